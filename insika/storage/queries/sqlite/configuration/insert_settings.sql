INSERT INTO settings (revision, data) VALUES (:revision, :data)
