INSERT INTO sessions (tenant, name, vars) VALUES (:tenant, :session, :vars) RETURNING id
