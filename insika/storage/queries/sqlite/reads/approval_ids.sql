-- Everything that begins with the prefix, by the index; char(1114111) sorts behind every other character.
SELECT id FROM approvals WHERE id >= :prefix AND id < :prefix || char(1114111) ORDER BY id LIMIT :limit
