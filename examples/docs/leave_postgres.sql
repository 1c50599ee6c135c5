-- Entities, except those in your own tables: the id, the status and the data as JSON.
SELECT workspace, lifecycle, id, status, version, data, updated_at FROM holdfast.entity WHERE NOT side;
-- Your streams.
SELECT workspace, stream, version, name, data, actor, at FROM holdfast.event ORDER BY workspace, stream, version;
-- The histories of entities, runs, batches and scopes, as far as they are retained.
SELECT workspace, stream, version, name, data, actor, at FROM holdfast.history ORDER BY workspace, stream, version;
-- Runs, with what they were started with and what they returned.
SELECT workspace, id, definition, key, status, input, state, output, error, finished_at FROM holdfast.run;
-- Their steps.
SELECT workspace, run, name, visit, status, output, error FROM holdfast.step;
-- Scopes that are not deleted.
SELECT workspace, kind, id, version, state FROM holdfast.scope WHERE state IS NOT NULL;
-- Wallets and their ledgers.
SELECT workspace, wallet, n, delta, balance, reason, reference, at FROM holdfast.ledger ORDER BY workspace, wallet, n;
