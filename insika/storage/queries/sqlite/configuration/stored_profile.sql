SELECT name, data FROM profiles WHERE revision = :revision
