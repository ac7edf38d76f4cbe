INSERT INTO profiles (revision, name, data) VALUES (:revision, :name, :data)
