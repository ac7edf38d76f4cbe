INSERT INTO spend_days (tenant, agent, day, tokens) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, agent, day) DO UPDATE SET tokens = tokens + excluded.tokens
