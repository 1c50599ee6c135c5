-- The events of a plan.
SELECT m.shard, m.command, e.n - 1, m.workspace, '$run/' || ok.run, ok.version + e.n, e.v ->> 'name'::text, e.v -> 'data'::text, NULL, NULL, ok.plan ->> 'actor'::text, t.now
  FROM t, ok JOIN m ON m.member = ok.member
 CROSS JOIN LATERAL pg_catalog.json_array_elements(ok.plan -> 'events'::text) WITH ORDINALITY AS e(v, n)
