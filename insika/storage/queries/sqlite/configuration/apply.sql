INSERT INTO applied_revisions (kind, name, revision, source, at) VALUES (:kind, :name, :revision, :source, insika_now())
