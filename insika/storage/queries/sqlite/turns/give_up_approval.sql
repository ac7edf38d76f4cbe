-- Undecided, or approved and not used. When a person decided stays as it was.
UPDATE approvals SET decision = :becomes, decided_at = coalesce(decided_at, insika_now())
WHERE turn_id = :turn_id AND call_id = :call_id AND (decision IS NULL OR decision = 'approved')
