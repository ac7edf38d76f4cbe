INSERT INTO applied_revisions (kind, name, revision, source, at)
VALUES (%(kind)s, %(name)s, %(revision)s, %(source)s, insika_now()) RETURNING id
