SELECT key FROM insika_raise(%(alerts)s::json, NULL) AS key
