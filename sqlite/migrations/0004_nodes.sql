-- Nodes, and what they have done by the minute.
-- min_reader: 3

-- The nodes that run an engine. A node refreshes its row and deletes it when it stops. instance is the id of its process:
-- an older process under the same name does not change the row of a newer one. report is what the node serves and how it
-- is, with ages in ms before seen_at. snapshot_at and snapshot_by are used by PostgreSQL only.
CREATE TABLE holdfast_node (
    name        TEXT    NOT NULL PRIMARY KEY,
    instance    TEXT    NOT NULL,
    version     TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    report      TEXT    NOT NULL,
    snapshot_at INTEGER,
    snapshot_by TEXT
) STRICT, WITHOUT ROWID;

-- What a node has done in a minute.
CREATE TABLE holdfast_node_minute (
    minute    INTEGER NOT NULL,
    node      TEXT    NOT NULL,
    commands  INTEGER NOT NULL,
    refusals  INTEGER NOT NULL,
    requests  INTEGER NOT NULL,
    runs      INTEGER NOT NULL,
    steps     INTEGER NOT NULL,
    items     INTEGER NOT NULL,
    reactions INTEGER NOT NULL,
    PRIMARY KEY (minute, node)
) STRICT, WITHOUT ROWID;

-- Operations that are uncertain.
CREATE INDEX holdfast_entity_uncertain ON holdfast_entity (shard, workspace, operation) WHERE phase = 'uncertain';
