UPDATE turns SET state = 'running', attempt = attempt + 1 WHERE id = :turn_id AND state = 'waiting'
