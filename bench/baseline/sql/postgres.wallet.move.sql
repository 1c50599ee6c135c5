-- Moves items, and with each an amount of its wallet, both or neither: the
-- wallet is locked first, and the item moved only where the wallet suffices. A
-- wallet is in one member at the most.
-- A member: $1 shard, $2 workspace, $3 id of the event, $4 lifecycle, $5 entity,
-- $6 from, $7 to, $8 name of the event, $9 wallet, $10 off the balance,
-- $11 onto what is reserved
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                         $9::text[], $10::bigint[], $11::bigint[])
             WITH ORDINALITY AS m(shard, workspace, event, lifecycle, entity, source, target, name, wallet, off, onto, member)
), able AS MATERIALIZED (
    SELECT m.*
      FROM m JOIN {schema}.wallet w ON w.shard = m.shard AND w.workspace = m.workspace AND w.id = m.wallet
     WHERE w.balance >= m.off AND w.reserved + m.onto >= 0
     ORDER BY m.wallet
       FOR UPDATE OF w
), moved AS (
    UPDATE {schema}.entity e
       SET status = a.target, version = e.version + 1, updated_at = clock_timestamp()
      FROM able a
     WHERE e.shard = a.shard AND e.workspace = a.workspace AND e.lifecycle = a.lifecycle AND e.id = a.entity AND e.status = a.source
    RETURNING a.*, e.version, e.updated_at
), paid AS (
    UPDATE {schema}.wallet w
       SET version = w.version + 1, balance = w.balance - v.off, reserved = w.reserved + v.onto, updated_at = v.updated_at
      FROM moved v
     WHERE w.shard = v.shard AND w.workspace = v.workspace AND w.id = v.wallet
    RETURNING v.member, w.version, w.balance, w.reserved
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT v.shard, v.event, 0, v.workspace, '$entity/' || v.lifecycle || '/' || v.entity, v.version, v.name,
           json_build_object('from', v.source, 'to', v.target, 'note', NULL), v.updated_at
      FROM moved v
     UNION ALL
    SELECT v.shard, v.event, 1, v.workspace, '$wallet/' || v.wallet, p.version, v.name,
           json_build_object('balance', p.balance, 'reserved', p.reserved), v.updated_at
      FROM moved v JOIN paid p ON p.member = v.member
)
SELECT member, balance FROM paid
