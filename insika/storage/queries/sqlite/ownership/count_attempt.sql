UPDATE turns SET attempt = attempt + 1 WHERE id = :turn_id AND state = 'running'
