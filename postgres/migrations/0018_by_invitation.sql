-- Indexes that only a statement that names them uses.
-- min_reader: 15

-- While little is known of a table, the planner may look for one row by any index that begins with its shard, and read all
-- of that shard; or it reads a shard by its key and sorts it, where another index has the order. These begin with
-- (shard + 0): they serve a statement that asks for just that, and it can use no other.
DROP INDEX {schema}.request_expires;
CREATE INDEX request_expires ON {schema}.request ((shard + 0), expires_at);
DROP INDEX {schema}.token_expires;
CREATE INDEX token_expires ON {schema}.token ((shard + 0), expires_at);
DROP INDEX {schema}.batch_live;
CREATE INDEX batch_live ON {schema}.batch ((shard + 0), handler) WHERE status NOT IN ('CANCELLED', 'COMPLETED');
DROP INDEX {schema}.entity_held;
CREATE INDEX entity_held ON {schema}.entity ((shard + 0), until) WHERE holder IS NOT NULL;
DROP INDEX {schema}.entity_due;
CREATE INDEX entity_due ON {schema}.entity ((shard + 0), (coalesce(queue, 'l:' || lifecycle)), due_at) WHERE phase = 'due';
DROP INDEX {schema}.entity_open;
CREATE UNIQUE INDEX entity_open ON {schema}.entity ((shard + 0), workspace, operation) WHERE phase <> 'free';
ALTER TABLE {schema}.ledger DROP CONSTRAINT ledger_shard_workspace_wallet_reference_key;
CREATE UNIQUE INDEX ledger_reference ON {schema}.ledger ((shard + 0), workspace, wallet, reference);
DROP INDEX {schema}.follow_held;
CREATE INDEX follow_held ON {schema}.follow ((shard + 0), until) WHERE holder IS NOT NULL;
DROP INDEX {schema}.entity_lost;
CREATE INDEX entity_lost ON {schema}.entity ((shard + 0), workspace) WHERE lost > 0;
DROP INDEX {schema}.step_lost;
CREATE INDEX step_lost ON {schema}.step ((shard + 0), workspace) WHERE lost > 0;
DROP INDEX {schema}.item_lost;
CREATE INDEX item_lost ON {schema}.item ((shard + 0), workspace) WHERE lost > 0;
DROP INDEX {schema}.follow_lost;
CREATE INDEX follow_lost ON {schema}.follow ((shard + 0), workspace) WHERE lost > 0;
