SELECT p.revision, p.name, p.data, a.source, a.at
FROM applied_revisions AS a
JOIN profiles AS p ON p.revision = a.revision
WHERE a.id IN (SELECT max(id) FROM applied_revisions WHERE kind = 'profile' GROUP BY name)
ORDER BY p.name
