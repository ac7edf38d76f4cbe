UPDATE approvals SET decision = :decision, decided_by = :by, reason = :reason, decided_at = insika_now()
WHERE id = :approval_id
