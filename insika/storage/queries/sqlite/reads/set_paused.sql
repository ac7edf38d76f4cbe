UPDATE sessions SET paused = :paused WHERE tenant = :tenant AND name = :name
