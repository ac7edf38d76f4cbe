UPDATE turns SET state = 'waiting' WHERE id = :turn_id AND state = 'running'
