-- False: the revision is kept with other data.
WITH kept AS (
  INSERT INTO profiles (revision, name, data) VALUES (%(revision)s, %(name)s, %(data)s::text::json)
  ON CONFLICT DO NOTHING RETURNING revision
)
SELECT EXISTS (SELECT 1 FROM kept) OR EXISTS (
  SELECT 1 FROM profiles WHERE revision = %(revision)s AND name = %(name)s AND data::text = %(data)s)
