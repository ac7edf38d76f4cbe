SELECT source FROM applied_revisions WHERE kind = :kind AND name = :name AND source <> 'operator' ORDER BY id DESC LIMIT 1
