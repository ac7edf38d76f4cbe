SELECT '', data FROM settings WHERE revision = :revision
