UPDATE sessions SET epoch = epoch WHERE id = %(session_id)s AND lease_id = %(lease_id)s RETURNING id
