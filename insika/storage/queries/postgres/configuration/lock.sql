-- Whoever applies waits for whoever is applying, so that each sees what is current.
LOCK TABLE applied_revisions IN SHARE ROW EXCLUSIVE MODE
