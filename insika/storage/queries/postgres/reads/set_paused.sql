UPDATE sessions SET paused = %(paused)s WHERE tenant = %(tenant)s AND name = %(name)s RETURNING id
