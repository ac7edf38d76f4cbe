SELECT s.revision, '', s.data, a.source, a.at
FROM applied_revisions AS a
JOIN settings AS s ON s.revision = a.revision
WHERE a.kind = 'settings'
ORDER BY a.id DESC LIMIT 1
