SELECT p.revision, p.name, p.data, a.source, a.at
FROM profiles AS p
JOIN applied_revisions AS a ON a.kind = 'profile' AND a.revision = p.revision
WHERE p.revision = %(revision)s
ORDER BY a.id DESC LIMIT 1
