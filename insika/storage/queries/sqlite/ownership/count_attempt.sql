-- That of a turn which waits for a person begins when it is resumed.
UPDATE turns SET attempt = attempt + 1 WHERE id = :turn_id AND state = 'running'
