-- Nodes, and what they have done by the minute.
-- min_reader: 3

-- The nodes that run an engine. A node refreshes its row and deletes it when it stops. instance is the id of its process:
-- an older process under the same name does not change the row of a newer one. report is what the node serves and how it
-- is, with ages in ms before seen_at. snapshot_at is since when the oldest snapshot is held that keeps rows from being
-- vacuumed, and snapshot_by who holds it.
CREATE TABLE {schema}.node (
    name        text        COLLATE "C" NOT NULL PRIMARY KEY,
    instance    text        COLLATE "C" NOT NULL,
    version     text        NOT NULL,
    started_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    report      json        NOT NULL,
    snapshot_at timestamptz,
    snapshot_by text
);

-- What a node has done in a minute.
CREATE TABLE {schema}.node_minute (
    minute    timestamptz NOT NULL,
    node      text        COLLATE "C" NOT NULL,
    commands  bigint      NOT NULL,
    refusals  bigint      NOT NULL,
    requests  bigint      NOT NULL,
    runs      bigint      NOT NULL,
    steps     bigint      NOT NULL,
    items     bigint      NOT NULL,
    reactions bigint      NOT NULL,
    PRIMARY KEY (minute, node)
);

-- Operations that need attention: those that are uncertain, and those whose hand-outs were lost. It takes the place of
-- entity_lost, so that a table that every transition writes to has no index more. Like entity_turn it begins with another
-- expression than entity_open, which has every open operation.
DROP INDEX {schema}.entity_lost;
CREATE INDEX entity_attention ON {schema}.entity ((0 + shard), workspace, operation) WHERE lost > 0 OR phase = 'uncertain';
