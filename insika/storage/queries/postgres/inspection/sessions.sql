-- A session that is owned, due or held has a due time, so all of it is found by the index of those. Since when one is
-- due without an owner nobody writes down; it cannot be for longer than since the last thing that happened to it.
WITH clock AS MATERIALIZED (
  SELECT insika_now() AS now, insika_now() - %(late_s)s * interval '1 s' AS late
), wanting AS MATERIALIZED (
  SELECT s.lease_id, s.lease_until, s.paused, s.paused AND s.controls = 0 AS held, s.deaths, s.waiting,
         s.turn_id, s.due_at <= clock.now AND (NOT s.paused OR s.controls > 0) AND s.lease_id IS NULL AS unowned,
         coalesce(greatest(nullif(s.due_at, '-infinity'), s.parked_at,
                           (SELECT max(a.decided_at) FROM approvals AS a WHERE a.turn_id = s.turn_id),
                           (SELECT max(m.at) FROM mailbox AS m WHERE m.session_id = s.id AND m.ended IS NULL)),
                  (SELECT t.started_at FROM turns AS t WHERE t.id = s.turn_id), clock.now) AS since
  FROM sessions AS s, clock WHERE s.due_at < 'infinity'
)
SELECT count(*) FILTER (WHERE lease_id IS NOT NULL AND lease_until >= now),
       count(*) FILTER (WHERE lease_id IS NOT NULL AND lease_until < late AND NOT held),
       count(*) FILTER (WHERE unowned AND since < late),
       coalesce(extract(epoch FROM max(now - since) FILTER (WHERE unowned AND since < late)), 0)::float8,
       count(*) FILTER (WHERE deaths >= 2),
       count(*) FILTER (WHERE paused AND (waiting > 0 OR turn_id IS NOT NULL)),
       (SELECT count(*) FROM mailbox WHERE ended IS NULL)
FROM wanting, clock
