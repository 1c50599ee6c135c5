-- The time that a lease of {1} has left, in ms.
greatest(pg_catalog.ceil(extract(epoch FROM {1}.until - c.now) * 1000::numeric), 0)
