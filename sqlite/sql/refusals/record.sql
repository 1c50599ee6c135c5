-- Records refusals. Where the version that refused the write is not known, it is that of the last event.
INSERT INTO holdfast_refusal (shard, workspace, id, stream, version, action, requester, actor, node, request, code, operation, epoch, stands_for, detail, at)
SELECT :shard, q.value ->> 'w', q.value ->> 'i', q.value ->> 's',
       coalesce(q.value ->> 'v',
                (SELECT h.version FROM holdfast_history AS h
                  WHERE h.shard = :shard AND h.workspace = q.value ->> 'w' AND h.stream = q.value ->> 's' ORDER BY h.version DESC LIMIT 1), -1),
       q.value ->> 'a', q.value ->> 'r', q.value ->> 'b', q.value ->> 'n', q.value ->> 'q', q.value ->> 'c',
       q.value ->> 'o', q.value ->> 'e', q.value ->> 'k', q.value -> 'd', {now} - (q.value ->> 't')
  FROM json_each(:refusals) AS q
 WHERE :workspace IS NOT NULL
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING 1
