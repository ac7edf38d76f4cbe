-- Everything that begins with the prefix, by the index; chr(1114111) sorts behind every other character.
SELECT id FROM approvals WHERE id >= %(prefix)s AND id < %(prefix)s || chr(1114111) ORDER BY id LIMIT %(limit)s
