SELECT revision, source FROM applied_revisions WHERE kind = :kind AND name = :name ORDER BY id DESC LIMIT 1
