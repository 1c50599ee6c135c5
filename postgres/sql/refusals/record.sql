-- Records refusals. Where the version that refused the write is not known, it is that of the last event.
-- :refusals a JSON list of {i: id, w: workspace, s: stream, v: version, a: action, r: requester, b: actor, n: node, q: request,
--           c: code, o: operation, e: epoch, k: stands for, d: detail, t: age in ms}
INSERT INTO {schema}.refusal (shard, workspace, id, stream, version, action, requester, actor, node, request, code, operation, epoch, stands_for, detail, at)
SELECT :shard, q.item ->> 'w'::text, q.item ->> 'i'::text, q.item ->> 's'::text,
       coalesce((q.item ->> 'v'::text)::bigint,
                (SELECT h.version FROM {schema}.history h
                  WHERE h.shard = :shard AND h.workspace = q.item ->> 'w'::text AND h.stream = q.item ->> 's'::text ORDER BY h.version DESC LIMIT 1), -1),
       q.item ->> 'a'::text, q.item ->> 'r'::text, q.item ->> 'b'::text, q.item ->> 'n'::text, q.item ->> 'q'::text, q.item ->> 'c'::text,
       q.item ->> 'o'::text, (q.item ->> 'e'::text)::bigint, (q.item ->> 'k'::text)::bigint, (q.item -> 'd'::text)::text::json,
       {now} - (q.item ->> 't'::text)::bigint::float8 * interval '1 ms'
  FROM pg_catalog.jsonb_array_elements(:refusals::jsonb) AS q(item)
 WHERE :workspace IS NOT NULL
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING 1
