SELECT state FROM outbox WHERE id = :id AND claim = :claim
