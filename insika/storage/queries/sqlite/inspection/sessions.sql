-- A session that is owned, due or held has a due time, so all of it is found by the index of those. Since when one is
-- due without an owner nobody writes down; it cannot be for longer than since the last thing that happened to it.
WITH clock AS (
  SELECT insika_now() AS now, insika_now() - :late_us AS late
), wanting AS (
  SELECT s.lease_id, s.lease_until, s.paused, s.deaths, s.waiting,
         s.due_at <= clock.now AND NOT s.paused AND s.lease_id IS NULL AS unowned,
         coalesce(
           nullif(max(s.due_at, coalesce((SELECT max(m.at) FROM mailbox AS m
                                          WHERE m.session_id = s.id AND m.ended IS NULL), 0)), 0),
           (SELECT t.started_at FROM turns AS t WHERE t.id = s.turn_id), clock.now) AS since
  FROM sessions AS s, clock WHERE s.due_at < 4611686018427387904
)
SELECT count(*) FILTER (WHERE lease_id IS NOT NULL AND lease_until >= now),
       count(*) FILTER (WHERE lease_id IS NOT NULL AND lease_until < late AND NOT paused),
       count(*) FILTER (WHERE unowned AND since < late),
       coalesce(max(now - since) FILTER (WHERE unowned AND since < late), 0) / 1e6,
       count(*) FILTER (WHERE deaths >= 2),
       count(*) FILTER (WHERE paused AND waiting > 0),
       (SELECT count(*) FROM mailbox WHERE ended IS NULL)
FROM wanting, clock
