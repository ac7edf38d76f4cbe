SELECT state FROM outbox WHERE id = %(id)s AND claim = %(claim)s
