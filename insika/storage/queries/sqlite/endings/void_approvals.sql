UPDATE approvals SET decision = 'void', decided_at = insika_now() WHERE turn_id = :turn_id AND decision IS NULL
