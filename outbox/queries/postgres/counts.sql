SELECT state, count(*) FROM outbox GROUP BY state
