-- An id that is known already is older than 24 hours here: it begins anew.
INSERT INTO job_ids (session_id, job_id, control, digest, seen_at, position, turn_id)
VALUES (?, ?, ?, ?, insika_now(), ?, ?)
ON CONFLICT (session_id, job_id, control) DO UPDATE SET
  digest = excluded.digest, seen_at = excluded.seen_at, position = excluded.position, turn_id = excluded.turn_id
