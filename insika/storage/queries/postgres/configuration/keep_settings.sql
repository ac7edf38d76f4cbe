-- False: the revision is kept with other data.
WITH kept AS (
  INSERT INTO settings (revision, data) VALUES (%(revision)s, %(data)s::text::json)
  ON CONFLICT DO NOTHING RETURNING revision
)
SELECT EXISTS (SELECT 1 FROM kept) OR EXISTS (
  SELECT 1 FROM settings WHERE revision = %(revision)s AND data::text = %(data)s)
