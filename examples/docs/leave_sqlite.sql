-- Entities, except those in your own tables: the id, the status and the data as JSON.
SELECT workspace, lifecycle, id, status, version, data, datetime(updated_at / 1000, 'unixepoch') AS updated_at FROM holdfast_entity WHERE side = 0;
-- Your streams.
SELECT workspace, stream, version, name, data, actor, datetime(at / 1000, 'unixepoch') AS at FROM holdfast_event ORDER BY workspace, stream, version;
-- The histories of entities, runs, batches and scopes, as far as they are retained.
SELECT workspace, stream, version, name, data, actor, datetime(at / 1000, 'unixepoch') AS at FROM holdfast_history ORDER BY workspace, stream, version;
-- Runs, with what they were started with and what they returned.
SELECT workspace, id, definition, key, status, input, state, output, error, datetime(finished_at / 1000, 'unixepoch') AS finished_at FROM holdfast_run;
-- Their steps.
SELECT workspace, run, name, visit, status, output, error FROM holdfast_step;
-- Scopes that are not deleted.
SELECT workspace, kind, id, version, state FROM holdfast_scope WHERE state IS NOT NULL;
-- Wallets and their ledgers.
SELECT workspace, wallet, n, delta, balance, reason, reference, datetime(at / 1000, 'unixepoch') AS at FROM holdfast_ledger ORDER BY workspace, wallet, n;
