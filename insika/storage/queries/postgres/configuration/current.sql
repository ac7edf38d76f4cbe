-- The revision that is current and where it is from, and the file that was applied last.
SELECT revision, source,
       (SELECT f.source FROM applied_revisions AS f
        WHERE f.kind = a.kind AND f.name = a.name AND f.source <> 'operator' ORDER BY f.id DESC LIMIT 1)
FROM applied_revisions AS a WHERE kind = %(kind)s AND name = %(name)s ORDER BY id DESC LIMIT 1
