package postgres_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
)

// planned are the statements that work on a few of many rows, with arguments that concern a
// hundred.
var planned = []struct{ name, args string }{
	{"reactions.list_turns", `0, '', '[["r", ""]]', 66, '[]'`},
	{"runs.list_turns", `0, '', '[["h", ""], ["", ""]]', 66, '[]'`},
	{"entities.list_turns", `0, '', '[["l:l", ""], ["h:w:h", ""]]', 66, '[]'`},
	{"batches.list_turns", `0, '', '[["", ""]]', 66, '[]'`},
	{"runs.list_ready", `0, 'w', '["", "h"]', 100, ''`},
	{"reactions.collect_due", `0, '', '[["r", "w", "", -1]]', 100`},
	{"reactions.take", `0, '', '[["r", 10000, null, "", "w"]]', 'h', 100, 1, 1, 100`},
	{"reactions.take", `0, '', '[["r", 10000, null, "", "w", "h", "worker"]]', 'h', 100, 100, 1, 100`},
	{"reactions.read_events", `0, '', '` + list(`["w", "s%d", -1, 10, null]`) + `', 100`},
	{"reactions.ack", `0, '', '` + list(`{"w": "w", "r": "r", "s": "s%d", "e": 1, "v": 0, "l": 1000}`) + `'`},
	{"reactions.record_delivery", `0, '', '` + list(`{"w": "w", "r": "r", "s": "s%d", "e": 1, "v": 0}`) + `'`},
	{"reactions.renew", `0, '', '` + list(`{"w": "w", "r": "r", "s": "s%d", "e": 1, "v": 0, "l": 1000}`) + `'`},
	{"reactions.release_expired", `0, '', '` + list(`{"w": "w", "r": "r", "s": "s%d", "e": 1, "v": 0, "l": 1000}`) + `'`},
	{"reactions.release_expired", `1, '', '` + list(`{"w": "w", "r": "r", "s": "s%d", "e": 1}`) + `'`},
	{"feed.assign_positions", `0, 'w', 100, 200`},
	{"batches.list_ready", `0, '', '["h"]', 16, '', '[]'`},
	{"batches.take", one + `, '{b}', '{me}', '{30000}', '{100}', '{1}', '{0}', '{NULL}'`},
	{"batches.take.fast", `0, 'w', '00000000-0000-7000-8000-000000000001', 'b', 'me', 30000, 100, 1, 0, NULL`},
	{"handlers.list_lost_deliveries", `0, 'w', '', 100`},
	{"batches.settle_items", one + `, '{b}', '{100}', '{0}', '{NULL}', ` + hundred(`1`) + `, ` + hundred(`k%d`) + `, ` + hundred(`1`) + `, ` + hundred(`1`)},
	{"batches.settle_items.fast", `0, 'w', '00000000-0000-7000-8000-000000000001', 'b', 100, 0, NULL, ` + hundred(`k%d`) + `, ` + hundred(`1`) + `, ` + hundred(`1`)},
	{"batches.settle", one + `, '{b}', '{k10101}', '{done}', '{1}', '{1}', '{NULL}', '{0}', '{0}', '{NULL}'`},
	{"batches.give_up_item", one + `, '{b}', '{k10101}', '{fail}', '{1}', '{no}', '{0}', '{NULL}'`},
	{"batches.add_items", one + `, '{o}', ARRAY['` + list(`["k%d", 1, {}]`) + `'], '{0}', '{NULL}'`},
	{"batches.renew", `0, 'w', 'b', 'k10101', 1, 1000`},
	{"batches.list_expired", `0, '', 100`},
	{"batches.pause", one + `, '{b}', '{0}', '{NULL}'`},
	{"batches.list_items", `0, 'w', 'b', 5000, 9223372036854775807, '', 100`},
	{"batches.list_items", `0, 'w', 'b', 5000, 5100, 'none', 100`}, // none match: it does not read on to the end
	{"batches.take_cleanup", `0, 'w', 1000, 100, 'worker', '["h"]', 0, 1`},
	{"entities.list_overdue", `0, '', '["n"]', 100, 900000`},
	{"runs.list_ready", `0, '', '["", "h"]', 100, ''`},
	{"runs.get", `0, 'w', 'run_10050', '', 0`},
	{"runs.list_expired", `0, '', 100`},
	{"runs.renew", `0, 'w', 'run_10050', 's', 1, 1, 1000`},
	{"runs.list_steps", `0, 'w', 'run_10050', 0, 100`},
	{"runs.list_open", `0, 'w', 'RUNNING', '', '', '', 'run_', 'run~', 100, 100, 0, 0, 0, 0`},
	{"runs.list_open", `0, 'w', 'RUNNING', 'other@1', 's', 'h', 'run_', 'run~', 100, 100, 1, 2, 1, 2`},
	{"runs.list", `0, 'w', '', '', '', '', 'run_', 'run~', 100, 100, 0, 0, 0, 0`},
	{"runs.list", `0, 'w', '', '', '', '', 'run_', 'run_15', 100, 100, 0, 0, 0, 0`}, // a page in the middle
	{"runs.list", `0, 'w', 'CANCELLED', '', '', 'none', 'run_', 'run~', 100, 100, 0, 0, 0, 0`},
	{"runs.list", `0, 'w', '', 'other@1', 's', '', 'run_', 'run~', 100, 100, 1, 2, 1, 2`},
	{"runs.list_by_key", `0, 'w', 'key15', 'key16', 1000, 11`},
	{"runs.list_by_key", `0, 'w', 'key15000', 'key15001', 1000, 11`}, // few match: it does not read on to the end
	{"runs.list_pending_approvals", `0, 'w', '', '', 0, 'pending', 100`},
	{"runs.list_approvals", `0, 'w', '', '', 0, '~', '', 100, 100`},
	{"runs.list_approvals", `0, 'w', 'run_15', '', 0, '~', 'expired', 100, 100`}, // none match: it does not read on to the end
	{"runs.get_approval", `0, 'w', 'run_10050', 's', 1`},
	{"runs.list_run_approvals", `0, 'w', 'run_10050', '', 0, '', 100`},
	{"runs.list_uncertain", `0, 'w', '', '', 100`},
	{"runs.list_prunable", `0, '', 100`},
	{"runs.delete", one + `, '{run_7}', '{expired_7}', '{0}'`},
	{"runs.start", one + `, '{run_new}', '{d@1}', '{fresh}', '{1}', '{me}', '{30000}', ARRAY['` + aStart + `'], '{0}', '{NULL}'`},
	{"runs.start_at_step", one + `, '{run_new}', '{me}', '{30000}', '{RUNNING}', '{"{}"}', '{"{}"}', '{n}', '{1}', '{1}', '{task}', '{h}', '{1}', '{1000}', '{""}', '{hold}', '{1}', '{NULL}', '{created}', '{"{}"}', '{stepStarted}', '{"{}"}', '{d@1}', '{fresh}', '{1}', '{0}', '{NULL}'`},
	{"runs.finish_step", one + `, '{run_10050}', '{me}', '{30000}', '{RUNNING}', '{NULL}', '{"{}"}', '{n}', '{1}', '{2}', '{task}', '{h}', '{1}', '{1000}', '{""}', '{hold}', '{1}', '{NULL}', '{stepCompleted}', '{"{}"}', '{stepStarted}', '{"{}"}', '{1}', '{s}', '{1}', '{1}', '{1}', '{n}', '{NULL}', '{0}', '{NULL}', '{0}', '{NULL}'`},
	{"runs.finish_steps", one + `, '{run_10050}', '{me}', '{30000}', '{RUNNING}', '{NULL}', '{"{}"}', '{n}', '{1}', '{102}', '{task}', '{h}', '{1}', '{1000}', '{""}', '{hold}', '{1}', '{NULL}', '{stepCompleted}', '{"{}"}', '{stepStarted}', '{"{}"}', '{1}', '{s}', '{1}', '{1}', '{1}', '{n}', '{NULL}', '{0}', '{NULL}', '{100}', '{n}', '{1}', '{0}', '{NULL}', ` + hundred(`1`) + `, ` + passed},
	{"runs.finish_steps.fast", `0, 'w', '00000000-0000-7000-8000-000000000001', 'run_10050', 'me', 30000, 'RUNNING', NULL, '{}', 'n', 1, 102, 'task', 'h', '1', 1000, '', 'hold', 1, NULL, 'stepCompleted', '{}', 'stepStarted', '{}', 1, 's', 1, 1, '1', 'n', NULL, 0, NULL, 100, 'n', 1, 0, NULL, ` + passed},
	{"runs.start_at_opaque_step", one + `, '{run_new2}', '{me}', '{30000}', '{RUNNING}', '{"{}"}', '{"{}"}', '{n}', '{1}', '{1}', '{task}', '{h}', '{1}', '{1000}', '{""}', '{hold}', '{1}', '{hold}', '{created}', '{"{}"}', '{stepStarted}', '{"{}"}', '{d@1}', '{fresh2}', '{1}', '{0}', '{NULL}'`},
	{"runs.finish_opaque_step", one + `, '{run_10050}', '{me}', '{30000}', '{RUNNING}', '{NULL}', '{"{}"}', '{n}', '{1}', '{2}', '{task}', '{h}', '{1}', '{1000}', '{""}', '{hold}', '{1}', '{hold}', '{stepCompleted}', '{"{}"}', '{stepStarted}', '{"{}"}', '{1}', '{s}', '{1}', '{1}', '{1}', '{n}', '{NULL}', '{0}', '{NULL}', '{1}', '{0}', '{NULL}'`},
	{"runs.apply_plan", one + `, '{run_10050}', '{1}', '{held}', '{s}', '{1}', '{1}', '{me}', '{30000}', ARRAY['` + aMove + `'], '{0}', '{NULL}'`},
	{"runs.add_signal", one + `, '{run_10051}', '{new}', '{t}', '{1}', '{NULL}', '{0}', '{NULL}'`},
	{"runs.list_untaken_signals", `0, '', '', '', '', 0, 100`},
	{"runs.decide_approval", one + `, '{apr_10052}', '{run_10052}', '{s}', '{1}', '{approved}', '{ann}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"runs.begin_effect", one + `, '{run_10053}', '{s}', '{1}', '{1}', '{charge}', '{0}', '{hold}', '{[]}'`},
	{"runs.end_effect", one + `, '{run_10053}', '{s}', '{1}', '{1}', '{charge}', '{0}', '{done}', '{1}', '{0}'`},
	{"scopes.get", `0, 'w', 'user', 'u10050'`},
	{"scopes.edit", one + `, '{user}', '{u10050}', '{inc}', '{n}', '{NULL}', '{1}', '{3}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"scopes.edit", one + `, '{user}', '{new}', '{unset}', '{n}', '{k}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"scopes.increment", one + `, '{user}', '{u10050}', '{n}', '{3}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"scopes.put", one + `, '{user}', '{u10050}', '{3}', '{"{}"}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{"{}"}', '{0}', '{NULL}'`},
	{"scopes.list", `0, 'w', 'user', '', 'u1', 'u2', 100`},
	{"scopes.list", `0, 'w', 'user', '', 'u15000', 'u15001', 100`}, // few match
	{"scopes.list_kinds", `0, 'w', '', 100`},
	{"scopes.get_born", `0, 'w', 'user', 'u10050'`},
	{"scopes.delete", one + `, '{user}', '{u10050}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"scopes.list_expired", `0, '', 100`},
	{"scopes.expire", one + `, '{user}', '{u7}', '{3}', '{0}', '{NULL}'`},
	{"scopes.delete_tombstone", one + `, '{user}', '{u57}'`},
	{"wake.list_due", `0, '', '[0]', '[["reaction", "r"], ["operation", "l:n"], ["step", "h"], ["batch", "h"], ["maintenance", ""], ["cleaning", ""], ["held reaction", ""], ["held stream", ""], ["held operation", ""], ["held step", ""], ["held item", ""], ["paused batch", ""], ["unfinished reaction", ""], ["dropped events", ""], ["old run", ""], ["old batch", ""], ["old scope", ""], ["old request", ""], ["old token", ""], ["old refusal", "86400000"], ["scope", "[0,\"w\",\"user\",\"u10050\",3]"], ["cancelled batch", "[0,\"w\",\"b\"]"], ["cancelled run", "[0,\"w\",\"run_10050\"]"]]', 2000`},
	{"batches.mark_cleaned", one + `, '{b}', ARRAY['` + list(`["k%d", 0, 0, 1]`) + `']`},
	{"refusals.list", `0, 'w', '$entity/l/e1', 9223372036854775807, 'ffffffff', 100`},
	{"refusals.list_recent", `0, 'w', 'ffffffff', 100`},
	{"inbox.list_uncertain_operations", `0, 'w', 1001`},
	{"inbox.list_uncertain_steps", `0, 'w', 1001`},
	{"inbox.list_blocked_streams", `0, 'w', 1001, 0`},
	{"inbox.list_failed_runs", `0, 'w', 1001`},
	{"inbox.list_pending_approvals", `0, 'w', 1001`},
	{"inbox.list_paused_batches", `0, 'w', 1001`},
	{"inbox.list_failing_teardowns", `0, 'w', 1001`},
	{"inbox.list_expired_leases", `0, 'w', 15000, 100`},
	{"inbox.list_closing_streams", `0, 'w', 15000, 1001`},
	{"inbox.list_due_handlers", `0, 'w', 15000, 1001`},
	{"inbox.list_overdue_signals", `0, 'w', 15000, 1001`},
	{"inbox.list_upcoming", `0, 'few', 1000`}, // for tests: it lists all that is live in a workspace
	{"inbox.list_undeleted", `0, 'w', 3600000, 100`},
	{"inbox.count_entries", `0, '', 15000, 3600000, 100`},
	{"inbox.list_oldest_due", `0, ''`},
	{"overview.count_live", `0, 'few'`}, // it counts all of a workspace
	{"overview.count_entities", `0, 'w', 100`},
	{"overview.count_runs", `0, 'w', 100`},
	{"overview.count_batches", `0, 'w', 100`},
	{"overview.count_streams", `0, 'w', 100`},
	{"overview.count_scopes", `0, 'w', 100`},
	{"overview.count_statuses", `0, 'w', 'u', 100`},
	{"quotas.count_work", `0, 'few', 100`}, // it counts all open work of a workspace
	{"quotas.count_definitions", `0, 'w', 100`},
	{"nodes.report", `0, '', 'n', 'i', 'v', 1000, '{}', 1, 0, 0, 0, 0, 0, 0, 5, NULL`},
	{"nodes.remove", `0, '', 'n', 'i'`},
	{"nodes.prune", `0, '', 604800000, 100`},
	{"nodes.list", `0, '', '', 100`},
	{"nodes.list_minutes", `0, '', 3600000, 0, '', 100`},
	{"refusals.prune", `0, '', 86400000, 100`},
	{"effects.prune", `0, '', '1', 86400000, 100`},
	{"idempotency.list_by_operation", `0, 'w', 'o', '', 100`},
	{"audit.list", `0, 'w', 'f', '', '', '', 0, 0, 100`},
	{"refusals.record", `0, '', '[{"i": "1", "w": "w", "s": "$entity/l/e1", "a": "s", "r": "", "b": "", "n": "", "q": "", "c": "", "o": "", "e": 0, "k": 1, "d": {}, "t": 0}]'`},
	{"batches.list_due", `0, '', 100`},
	{"batches.list_prunable", `0, '', 100`},
	{"batches.delete_items", one + `, '{c15}', '{""}', '{500}'`},
	{"batches.finalize", one + `, '{o}', ARRAY['` + list(`"k%d"`) + `'], '{NULL}', '{0}', '{NULL}'`},
	{"batches.cancel_items", one + `, '{f}', '{0}', '{100}', '{0}', '{NULL}'`},
	{"batches.list_bulks", `0, 'w', '$bulk/~', 100`},
	{"batches.list", `0, 'w', '', '', '', '', '~', 100, 100, 0, 0, 0, 0`},
	{"batches.list", `0, 'w', 'CANCELLED', 'none', 'none', 'c15', '~', 100, 100, 1, 2, 1, 2`},
	{"batches.list_backward", `0, 'w', '', '', '', '~', 100, 100, 0, 0, 0, 0`},
	{"batches.list_backward", `0, 'w', 'CANCELLED', '', '', 'c15', 100, 100, 0, 0, 0, 0`},
	{"entities.list", `0, 'w', 'l', '', 'e15', '~', 100, 100, 0, 0, 0, 0`},
	{"entities.list", `0, 'w', 'l', 'none', '', '~', 100, 100, 1, 2, 1, 2`},
	{"batches.list_payable", `0, '', '', 100`},
	{"streams.list", `0, 'w', '', 's1', 's2', 100`},
	{"streams.list", `0, 'w', '', 's15000', 's15001', 100`}, // few match: it does not read on to the end
	{"streams.get", `0, 'w', 's150'`},
	{"streams.count_names", `0, 'v', 'long', 0, 100`},
	{"streams.delete_events", `0, 'v', 'long', 0, 100`},
	{"streams.delete_feed", `0, 'v', 'long', 0, 100`},
	{"streams.mark_pruned", `0, 'v', 'long', 0, 100`},
	{"streams.close_list_expired", `0, '', 100`},
	{"streams.list_deletable", `0, '', 0, 100`},
	{"check.batches", `0, 'w', 'c1', 100`},
	{"check.claims", `0, 'w', 'l', 'e1', 100`},
	{"check.entities", `0, 'w', 'l', 'e1', 100`},
	{"check.events", `0, 'w', 's1', 100`},
	{"check.positions", `0, 'w', 'r', 's1', 100`},
	{"check.histories", `0, 'w', '$entity/l/e1', 100`},
	{"check.runs", `0, 'w', 'run_10050', 100`},
	{"check.scopes", `0, 'w', 'user', 'u1', 100`},
	{"check.statuses", `0, 'w', 'l', 'e1', 100`},
	{"check.streams", `0, 'w', 's1', 100`},
	{"check.wallets", `0, 'w', 'w2', 100`},
	{"effects.list_contradictions", `0, 'w', '', '', 100`},
	{"entities.list_expired", `0, '', '["l"]', 100`},
	{"entities.take_due", `0, '', '[["l:l", 1000, "w"]]', 'h', 100, 1`},
	{"entities.list_missing_claims", `0, '', '{}', '', '', '', 100`},
	{"events.read", `0, 'v', 'long', 5000, 100`},
	{"events.read_backward", `0, 'v', 'long', 5000, 100`},
	{"events.search", `0, 'v', 'long', 5000, 100, 10, '[]', '', 'ann', NULL, NULL`},
	{"events.search_backward", `0, 'v', 'long', 5000, 100, 10, '["e"]', '', '', 0, NULL`},
	{"events.void_command", one + `, '{00000000-0000-7000-8000-000000000002}'`},
	{"feed.list_positions", `0, 'v', 'long', 100, 200`},
	{"registry.get", `0, 'v'`},
	{"feed.create_counter", `0, 'v'`},
	{"feed.read", `0, 'v', 5000, 100, 1000`},
	{"feed.search", `0, 'v', 5000, 100, 10, '[]', '', 'ann', NULL, NULL`},
	{"feed.search_backward", `0, 'v', 5000, 100, 10, '["e"]', '', '', 0, NULL`},
	{"feed.ready", `0, '', 100`},
	{"history.get_page_end", `0, '', '` + least + `', '` + most + `', 100`},
	{"reactions.mark_live", `0, 'w7', 'comes', '["prepared"]'`},
	{"history.prune", `0, '', '` + least + `', '` + most + `', 100, 3600000`},
	{"history.find_operation", `0, 'w', '` + least + `', '` + least + `'`},
	{"history.get_horizon", `0, 'w', '` + least + `'`},
	{"history.list_new", `0, 'w', '` + least + `', 0, 100, 512, 5, '[3]', '{}', '` + least + `', 7, '[3,4]', '{}', 9, '[]'`},
	{"history.tail", `0, 'w', '` + least + `', 0, 100`},
	{"history.void_command", one + `, '{00000000-0000-7000-8000-000000000002}'`},
	{"operations.list", `0, 'w', '', '', '~', '', 100`},
	{"operations.list", `0, 'w', '', 'op15000', 'op15000', '', 1`},
	{"reactions.list_behind_streams", `0, 'w', 'fresh', 's1', 100`},
	{"reactions.list_behind_histories", `0, 'w', 'fresh', '$entity/l/e1', 100`},
	{"reactions.delete_positions", `0, 'w', 'gone', 100`},
	{"reactions.list_expired", `0, '', 100`},
	{"reactions.list_by_handler_kind", `0, '', 'worker', '', '', 100`},
	{"reactions.read_histories", `0, 'w', '[["w", "$reaction/r/s150", 5000, 6000, null]]', 100`},
	{"reactions.get_position", `0, 'w', 'h', '$reaction/r/s150'`},
	{"reactions.list_positions", `0, 'w', '', '~', NULL, 0, '', '', 100`},
	{"reactions.list_positions", `0, 'w', '', '~', 1, 0, '', '', 100`},
	{"reactions.list_positions", `0, 'w', 'r', 'r', NULL, 1, '', '', 100`},
	{"reactions.repair", one + `, '{r}', '{s210}', '{reset}', '{NULL}', '{-1}', '{0}', '{NULL}'`},
	{"reactions.block", one + `, '{r}', '{s150}', '{1}', '{blocked}', '{0}', '{0}', '{no}', '{1}', '{0}', '{NULL}'`},
	{"reactions.list_unfinished", `0, '', 100`},
	{"idempotency.prune", `0, '', 100`},
	{"idempotency.probe", one + `, '{k10050}'`},
	{"idempotency.record", one + `, '{new}', '{f}', '{200}', '{1}', '{86400000}'`},
	{"claim_tokens.prune", `0, '', 100`},
	{"sessions.prune", `0, '', 100`},
	{"sessions.create", one + `, '{k1}', '{new}', '{h}', '{1000}'`},
	{"sessions.delete", one + `, '{k1}', '{i103}'`},
	{"sessions.delete_oldest", `0, 'w', 'k1', 'i103', 99`},
	{"sessions.find", `0, 'w', 'k1', 'i103'`},
	{"keys.record_uses", `0, '', '[{"i": "k1", "t": 0}]'`},
	{"wallets.list_ledger", `0, 'w', 'w1', 5000, 100`},
	{"wallets.list_ledger_backward", `0, 'w', 'w1', 5000, 100`},
	{"wallets.list", `0, 'w', 'w15', '~', 'w15', 100`},
	{"wallets.list", `0, 'w', 'w15000', 'w15000', '', 1`},
	{"webhooks.list_all", `0, '', '', '', 100`},
	{"workspaces.list", `0, '', '', 100, ''`},
}

// These are the first and the last id.
const (
	least = `00000000-0000-0000-0000-000000000000`
	most  = `ffffffff-ffff-ffff-ffff-ffffffffffff`
)

// aMove ends a step and begins another.
const aMove = `{"run": {"status": "RUNNING", "step": "n", "visit": 1, "cancel": false, "over": false},
	"touch": {"status": "COMPLETED", "hold": "drop", "when": "none", "attempts": 1, "failures": 0, "deaths": 0, "quiet": false, "lost": 0, "uncertain": false, "over": true},
	"add": [{"name": "n", "visit": 1, "n": 2, "type": "task", "handler": "h", "status": "RUNNING", "input": 1, "attempts": 1, "timeout": 1000, "held": true,
	"safety": "", "unknown": "hold", "begun": 0, "over": false}],
	"results": [{"n": "x", "o": 0, "s": "done", "r": 1}], "signal": "g", "lapse": true, "events": [{"name": "stepCompleted", "data": {}}, {"name": "stepStarted", "data": {}}]}`

// aStart begins a run.
const aStart = `{"run": {"status": "PENDING", "step": "s", "visit": 1, "state": {}, "memo": {}, "over": false},
	"add": [{"name": "s", "visit": 1, "n": 1, "type": "task", "handler": "h", "status": "PENDING", "input": 1, "attempts": 0, "timeout": 1000, "held": false, "due": 0,
	"safety": "", "unknown": "hold", "begun": 0, "over": false}], "events": [{"name": "created", "data": {}}]}`

// one begins the arguments of a command.
const one = `'{0}', '{w}', '{00000000-0000-7000-8000-000000000001}'`

// passed are the arguments of a hundred steps that begin and complete in one record.
var passed = hundred(`%d`) + `, ` + hundred(`k%d`) + strings.Repeat(`, `+hundred(`1`), 7) + `, ` + hundred(`1000`) + strings.Repeat(`, `+hundred(`""`), 2) + strings.Repeat(`, `+hundred(`1`), 2)

// hundred returns an array of a hundred texts of one format, with the numbers from 10101.
func hundred(format string) string {
	all := make([]string, 100)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "%d", strconv.Itoa(10101+i))
	}
	return "'{" + strings.Join(all, ",") + "}'"
}

// list returns a JSON list of a hundred entries of one format, with the numbers from 101.
func list(format string) string {
	all := make([]string, 100)
	for i := range all {
		all[i] = fmt.Sprintf(format, 101+i)
	}
	return "[" + strings.Join(all, ",") + "]"
}

// many fills the tables. Most of the rows are finished, not due yet, or of another object.
var many = []string{
	`INSERT INTO holdfast.sequence VALUES (0, 'w', 0)`,
	`INSERT INTO holdfast.reaction (shard, workspace, name, source, events, streams, options, max_deaths, priority, base, state, created_at, updated_at)
	 VALUES (0, 'w', 'r', 'event', 'null', '', '{"handler": "h"}', 1, 0, 0, 'live', clock_timestamp(), clock_timestamp())`,
	`INSERT INTO holdfast.handler VALUES (0, 'w', 'h', 'worker', '', '', '', 0, '', clock_timestamp(), clock_timestamp())`,
	`INSERT INTO holdfast.entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at, phase, operation, revert, due_at, queue, claimed_at)
	 SELECT 0, 'w', 'n', 'e' || i, 's', 0, '{}', clock_timestamp(), clock_timestamp(), CASE WHEN i > 100 THEN 'free' ELSE 'due' END, 'o' || i, 'r',
	        clock_timestamp() - interval '1 hour', 'h:w:h', clock_timestamp() FROM generate_series(1, 20000) AS i`,
	`INSERT INTO holdfast.wallet VALUES (0, 'w', 'w', 1000000, false, 0, clock_timestamp(), clock_timestamp())`,
	`INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	        next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at)
	 VALUES (0, 'w', 'b', 'w', 'h', 'RUNNING', 500, 3, 5, 1000, false, false, true, false, 20000, 10200, 0, 100, 10000, 0, 100, 0, 100, 10000, 100, 0, 0,
	         clock_timestamp(), clock_timestamp(), clock_timestamp())`,
	`INSERT INTO holdfast.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, holder, epoch, until, deaths, taken_at, sweep_at, sweeps, dirty, updated_at)
	 SELECT 0, 'w', 'b', 'k' || n, n, 1, 1, CASE WHEN n > 10200 THEN 'pending' WHEN n > 10100 THEN 'running' WHEN n BETWEEN 101 AND 200 THEN 'failed' ELSE 'succeeded' END,
	        '{}', 0, CASE WHEN n BETWEEN 10101 AND 10200 THEN 'me' END, 1, CASE WHEN n BETWEEN 10101 AND 10200 THEN clock_timestamp() + interval '1 hour' END, 0,
	        clock_timestamp() + interval '1 hour', CASE WHEN n BETWEEN 101 AND 200 THEN clock_timestamp() END, 0, n BETWEEN 101 AND 200, clock_timestamp()
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	        next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at)
	 VALUES (0, 'w', 'o', 'w', 'o', 'RUNNING', 500, 3, 5, 1000, false, false, false, false, 20000, 20001, 0, 0, 20000, 0, 0, 0, 0, 20000, 0, 0, 0,
	         clock_timestamp(), clock_timestamp(), clock_timestamp())`,
	`INSERT INTO holdfast.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
	 SELECT 0, 'w', 'o', 'k' || n, n, 1, 1, 'succeeded', '{}', 0, 1, 0, 0, false, clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.run (shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, finished_at, prune_at, updated_at)
	 SELECT 0, 'w', 'run_' || n, 'd@1', 'key' || n, CASE WHEN n BETWEEN 10001 AND 10100 THEN 'RUNNING' ELSE 'COMPLETED' END, 1, '{}', '{}', '{}', 's', 1, false,
	        clock_timestamp(), CASE WHEN n NOT BETWEEN 10001 AND 10100 THEN clock_timestamp() END,
	        CASE WHEN n NOT BETWEEN 10001 AND 10100 THEN clock_timestamp() + (CASE WHEN n <= 50 THEN -1 ELSE 1 END) * interval '1 day' END, clock_timestamp()
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.step (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, holder, epoch, until, deaths, timeout, taken_at, due_at,
	        begun, uncertain, safety, unknown, created_at)
	 SELECT 0, 'w', 'run_' || n, 's', 1, 1, 'task', CASE WHEN n % 2 = 0 THEN 'h' ELSE '' END, CASE WHEN n BETWEEN 10001 AND 10100 THEN 'RUNNING' ELSE 'COMPLETED' END, '{}', 1, 0,
	        CASE WHEN n BETWEEN 10041 AND 10080 THEN 'me' END, 1, CASE WHEN n BETWEEN 10041 AND 10080 THEN clock_timestamp() + interval '1 hour' END, 0, 3600000,
	        clock_timestamp(), CASE WHEN n BETWEEN 10001 AND 10040 THEN clock_timestamp() END, 0, n BETWEEN 10081 AND 10090, '', 'hold', clock_timestamp()
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.approval (shard, workspace, run, step, visit, prompt, requesters, status, created_at, decided_at)
	 SELECT 0, 'w', 'run_' || n, 's', 1, '?', '[]', CASE WHEN n BETWEEN 10001 AND 10100 THEN 'pending' ELSE 'approved' END, clock_timestamp(), clock_timestamp()
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.signal (shard, workspace, run, id, n, type, payload, taken, at)
	 SELECT 0, 'w', 'run_' || n, 'g', 1, 't', '1', CASE WHEN n BETWEEN 10001 AND 10100 THEN NULL ELSE 's/1' END, clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.effect (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
	 SELECT 0, 'w', 'run_' || n || '/s/1', 'x', 0, 1, 'begun', 'hold', clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.scope (shard, workspace, kind, id, version, state, created_at, updated_at, expires_at)
	 SELECT 0, 'w', 'user', 'u' || n, 3, CASE WHEN n BETWEEN 51 AND 100 THEN NULL ELSE '{"n": 1}'::jsonb END, clock_timestamp(), clock_timestamp(),
	        CASE WHEN n <= 100 THEN clock_timestamp() - interval '1 minute' WHEN n % 2 = 0 THEN clock_timestamp() + interval '1 day' END
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.due SELECT 0, 'r', 'w', 's' || n, v FROM generate_series(1, 10000) n, generate_series(0, 1) v`,
	`INSERT INTO holdfast.event (shard, id, n, workspace, stream, version, name, data, at)
	 SELECT 0, gen_random_uuid(), 0, 'w', 's' || n, v, 'e', '{}', clock_timestamp() FROM generate_series(1, 10000) n, generate_series(0, 1) v`,
	`INSERT INTO holdfast.stream (shard, workspace, name, head) SELECT 0, 'w', 's' || n, 1 FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.follow (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at, holder, until)
	 SELECT 0, 'w', r, 's' || n, -1, 1, clock_timestamp() - n * interval '1 ms', clock_timestamp() - n * interval '1 ms', 1, clock_timestamp(),
	        CASE WHEN n BETWEEN 101 AND 200 AND r = 'r' THEN 'h' END, CASE WHEN n BETWEEN 101 AND 200 AND r = 'r' THEN clock_timestamp() + interval '1 hour' END
	   FROM generate_series(1, 20000) n, (VALUES ('r'), ('$feed')) AS q(r)`,
	`INSERT INTO holdfast.reaction (shard, workspace, name, source, events, streams, options, max_deaths, priority, base, state, created_at, updated_at)
	 SELECT 0, w, r, s, '["*"]', '', '{"handler": "h"}', 1, 0, 0, t, clock_timestamp(), clock_timestamp()
	   FROM (SELECT 'w' || n AS w, 'r' AS r, 'event' AS s, 'live' AS t FROM generate_series(1, 20000) n
	         UNION ALL VALUES ('w', 'h', 'history', 'live'), ('w', 'gone', 'event', 'removed'), ('w', 'held', 'event', 'live'), ('w7', 'comes', 'history', 'waiting')) AS x`,
	`UPDATE holdfast.reaction SET waits = '["prepared"]' WHERE name = 'comes'`,
	`INSERT INTO holdfast.handler SELECT 0, 'w' || n, 'h', 'worker', '', '', '', 0, '', clock_timestamp(), clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.webhook (shard, workspace, id, name, url, events, streams, secret, version, created_by, created_at)
	 SELECT 0, 'w' || n, 'x', '', '', '[]', '', '', 0, '', clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.workspace SELECT 'w' || n, 0, clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.follow (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at, holder, until)
	 SELECT 0, 'w', r, 's' || n, -1, 1, clock_timestamp(), clock_timestamp(), 1, clock_timestamp(), CASE r WHEN 'held' THEN 'h' END,
	        CASE r WHEN 'held' THEN clock_timestamp() + CASE WHEN n <= 50 THEN -1 ELSE 1 END * interval '1 hour' END
	   FROM generate_series(1, 20000) n, (VALUES ('gone'), ('held')) AS q(r)`,
	`INSERT INTO holdfast.follow (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
	 VALUES (0, 'w', 'h', '$reaction/r/s150', 19999, 19999, clock_timestamp(), clock_timestamp(), 1, clock_timestamp())`,
	`INSERT INTO holdfast.follow (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at, holder, until)
	 SELECT 1, 'w', 'r', 's' || n, -1, 1, clock_timestamp(), clock_timestamp(), 1, clock_timestamp(),
	        CASE WHEN n BETWEEN 101 AND 200 THEN 'h' END, CASE WHEN n BETWEEN 101 AND 200 THEN clock_timestamp() - interval '1 hour' END FROM generate_series(1, 20000) n`,
	`UPDATE holdfast.follow SET crash_group = 50, lost = 1 WHERE reaction = 'r' AND stream BETWEEN 's13001' AND 's13050'`,
	`UPDATE holdfast.entity SET lost = 1 WHERE id BETWEEN 'e13001' AND 'e13050'`,
	`UPDATE holdfast.step SET lost = 1 WHERE run BETWEEN 'run_10001' AND 'run_10100'`,
	`UPDATE holdfast.item SET lost = 1 WHERE batch = 'b' AND key BETWEEN 'k10101' AND 'k10150'`,
	`UPDATE holdfast.follow SET blocked = true WHERE reaction = 'r' AND stream BETWEEN 's14001' AND 's14050'`,
	`UPDATE holdfast.follow SET failing = 1 WHERE reaction = 'r' AND stream BETWEEN 's14041' AND 's14090'`,
	`INSERT INTO holdfast.due SELECT 0, 'gone', 'w', 's' || n, 1 FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.stream (shard, workspace, name, head, first) VALUES (0, 'v', 'long', 20000, 100)`,
	`UPDATE holdfast.stream SET first = 1 WHERE name BETWEEN 's15001' AND 's15050'`,
	`UPDATE holdfast.stream SET holder = 'h', state = 'closing', until = clock_timestamp() + CASE WHEN name < 's15150' THEN -1 ELSE 1 END * interval '1 hour'
	  WHERE name BETWEEN 's15101' AND 's18000'`,
	`INSERT INTO holdfast.event (shard, id, n, workspace, stream, version, name, data, at)
	 SELECT 0, gen_random_uuid(), 0, 'v', 'long', n, 'e', '{}', clock_timestamp() - interval '1 day' FROM generate_series(0, 20000) n`,
	`INSERT INTO holdfast.feed SELECT 0, 'v', n + 1, 'long', n FROM generate_series(0, 20000) n`,
	`INSERT INTO holdfast.sequence VALUES (0, 'v', 20001)`,
	`INSERT INTO holdfast.entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at, phase, operation, revert, epoch, holder, until, due_at)
	 SELECT 0, 'w', 'l', 'e' || n, 'new', 0, '{}', clock_timestamp(), clock_timestamp(), p, 'op' || n, 'new', 1, CASE p WHEN 'held' THEN 'h' END,
	        CASE p WHEN 'held' THEN at END, CASE p WHEN 'due' THEN at END
	   FROM (SELECT n, CASE n % 4 WHEN 0 THEN 'held' WHEN 1 THEN 'due' ELSE 'free' END AS p,
	                clock_timestamp() + CASE WHEN n <= 400 THEN -1 ELSE 1 END * interval '1 hour' AS at FROM generate_series(1, 20000) n) AS x`,
	`INSERT INTO holdfast.history (shard, id, n, workspace, stream, version, name, data, at)
	 SELECT 0, ('4' || substr(md5(s), 2))::uuid, 0, 'w', s, v, 'e', '{}', clock_timestamp() - interval '1 day'
	   FROM (SELECT '$entity/l/e' || n AS s, 0 AS v FROM generate_series(1, 20000) n
	         UNION ALL SELECT '$scope/user/u' || n, 3 FROM generate_series(1, 20000) n
	         UNION ALL SELECT '$run/run_' || n, 1 FROM generate_series(1, 20000) n
	         UNION ALL SELECT '$batch/c' || n, 0 FROM generate_series(1, 20000) n) AS x`,
	`INSERT INTO holdfast.history (shard, id, n, workspace, stream, version, name, data, at)
	 SELECT 0, ('f' || substr(md5(n::text), 2))::uuid, 0, 'w', '$reaction/r/s150', n, 'e', '{}', clock_timestamp() - interval '1 day' FROM generate_series(0, 19999) n`,
	`INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	        next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, due_at, served_at, created_at, updated_at)
	 SELECT 0, 'w', 'c' || n, 'w1', 'z', CASE WHEN n <= 50 THEN 'PAUSED' ELSE 'COMPLETED' END, 500, 3, 5, 1000, false, false, true, false, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0,
	        CASE WHEN n <= 50 THEN clock_timestamp() - interval '1 hour' WHEN n <= 10000 THEN clock_timestamp() + interval '1 hour' END,
	        clock_timestamp(), clock_timestamp(), clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweep_at, sweeps, dirty, updated_at)
	 SELECT 0, 'w', 'c' || n, 'k', 1, 1, 1, 'succeeded', '{}', 0, 1, 0, clock_timestamp() + interval '1 hour', 0, false, clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	        next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at)
	 VALUES (0, 'w', 'f', 'w', 'f', 'RUNNING', 500, 3, 5, 1000, false, false, true, true, 20000, 20000, 0, 0, 20000, 0, 0, 0, 0, 20000, 0, 0, 0,
	         clock_timestamp(), clock_timestamp(), clock_timestamp())`,
	`INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	        next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at, about)
	 SELECT 0, 'w', '$bulk/' || n, '$bulk', '$bulk', 'COMPLETED', 500, 3, 5, 1000, false, false, true, false, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0,
	        clock_timestamp(), clock_timestamp(), clock_timestamp(), '{}' FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
	 SELECT 0, 'w', 'f', 'k' || n, n, 1, 1, 'succeeded', '{}', 0, 1, 0, 0, false, clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.wallet SELECT 0, 'w', 'w' || n, 1000, false, 0, clock_timestamp(), clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.ledger SELECT 0, 'w', 'w1', n, -1, 1000, 'charge', '$batch/c' || n || '/charge/k', clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.refusal SELECT 0, 'w', gen_random_uuid()::text, '$entity/l/e1', n, 's', 'r', 'a', 'n', 'q', 'c', 'o', 0, 1, '{}', clock_timestamp() - CASE WHEN n <= 50 THEN 2 ELSE 0 END * interval '1 day'
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at, phase, operation, revert)
	 SELECT 0, 'w', 'u', 'e' || n, 's', 0, '{}', clock_timestamp(), clock_timestamp(), CASE WHEN n <= 50 THEN 'uncertain' ELSE 'free' END, 'un' || n, 'r' FROM generate_series(1, 20000) n`,
	`UPDATE holdfast.run SET status = 'FAILED' WHERE id BETWEEN 'run_13001' AND 'run_13050'`,
	`UPDATE holdfast.step SET due_at = clock_timestamp() - interval '1 minute', deadline = clock_timestamp() - interval '1 minute', type = 'event', handler = '' WHERE run BETWEEN 'run_10001' AND 'run_10010'`,
	`UPDATE holdfast.batch SET error = 'no', cancel_requested = true WHERE id = 'f'`,
	`UPDATE holdfast.batch SET prune_at = clock_timestamp() - interval '1 day' WHERE id BETWEEN 'c10101' AND 'c10150'`,
	`INSERT INTO holdfast.node_minute SELECT date_trunc('minute', clock_timestamp()) - n * interval '1 minute', 'n', 1, 1, 1, 1, 1, 1, 1 FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.node VALUES ('n', 'i', 'v', clock_timestamp(), clock_timestamp(), '{}')`,
	`INSERT INTO holdfast.audit SELECT 0, 'w', lpad(n::text, 8, '0'), 'key.create', 'key/k', 'a', 'q', NULL, NULL, clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.request (shard, workspace, key, fingerprint, state, epoch, operation, created_at, expires_at)
	 SELECT 0, 'w', 'of ' || n, '', 'open', 0, CASE WHEN n <= 2 THEN 'o' ELSE 'o' || n END, clock_timestamp(), clock_timestamp() + interval '1 day' FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.request (shard, workspace, key, fingerprint, state, epoch, created_at, expires_at)
	 SELECT 0, 'w', 'k' || n, '', 'done', 1, clock_timestamp(), clock_timestamp() + CASE WHEN n <= 50 THEN -1 ELSE 1 END * interval '1 hour' FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.token SELECT 0, 'w', 'k' || n, 'l', 'e1', 'o', 1, '', clock_timestamp() + CASE WHEN n <= 50 THEN -1 ELSE 1 END * interval '1 hour'
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.api_key (id, workspace, name, role, requesters, hash, rate, version, created_by, created_at, restrictions)
	 SELECT 'k' || n, 'w', 'n', 'admin', '[]', 'h', 0, 0, 'a', clock_timestamp(), '{}' FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.session SELECT 0, 'w', 'k' || n / 100, 'i' || n, 'h', clock_timestamp(), clock_timestamp() + CASE WHEN n <= 50 THEN -1 ELSE 1 END * interval '1 hour'
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.late_call SELECT 0, 'w', 'op' || n, 'x', 0, 1, 'done', gen_random_uuid(), '', '1', '', clock_timestamp() FROM generate_series(1, 20000) n`,
}

// TestAFewOfManyReadsFew verifies that a statement that works on a few of many rows reads few,
// under the settings that the engine uses: with plans made while the tables were empty or had a few
// rows, with or without statistics; with plans made when they are full but the statistics are old;
// and with plans made for current statistics.
func TestAFewOfManyReadsFew(t *testing.T) {
	t.Parallel()
	testlevel.Long(t)
	for _, known := range []string{"nothing is known", "known to be empty", "known to have few"} {
		t.Run(known, func(t *testing.T) {
			t.Parallel()
			url, texts := prepared(t), statements(t)
			conn := planner(t, url)
			unknown(t, conn)
			switch known {
			case "known to be empty":
				execute(t, conn, `VACUUM ANALYZE`)
			case "known to have few":
				for _, fill := range many {
					execute(t, conn, strings.ReplaceAll(fill, "20000", "3"))
				}
				execute(t, conn, `VACUUM ANALYZE`)
			}
			prepare(t, conn, texts)
			byKeys(t, conn, texts, "with an old plan")
			if known == "known to have few" {
				for _, table := range tables(t, conn) {
					execute(t, conn, `DELETE FROM holdfast.`+table+` WHERE '`+table+`' NOT IN ('clock', 'migration')`)
				}
			}
			execute(t, conn, many...)
			readFew(t, conn, "with an old plan")

			late := planner(t, url)
			prepare(t, late, texts)
			byKeys(t, late, texts, "with a new plan and old statistics")
			readFew(t, late, "with a new plan and old statistics")

			if known == "nothing is known" { // current statistics do not depend on the old ones
				execute(t, conn, `ANALYZE`)
				byKeys(t, conn, texts, "with a new plan")
				readFew(t, conn, "with a new plan")
			}
		})
	}
}

// planner opens a connection that plans as the engine's own do.
func planner(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn := connect(t, url)
	for name, value := range postgres.Session {
		execute(t, conn, `SET `+name+` = '`+value+`'`)
	}
	return conn
}

func statements(t *testing.T) store.Texts {
	t.Helper()
	texts, err := postgres.Inlined("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func tables(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	return query[[]string](t, conn, `SELECT array_agg(c.relname::text) FROM pg_class c WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'r'`)
}

// unknown keeps the server from collecting statistics of the tables by itself.
func unknown(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, table := range tables(t, conn) {
		execute(t, conn, `ALTER TABLE holdfast.`+table+` SET (autovacuum_enabled = false)`)
	}
}

// prepare plans every statement.
func prepare(t *testing.T, conn *pgx.Conn, texts store.Texts) {
	t.Helper()
	for name, text := range texts {
		execute(t, conn, `PREPARE "`+name+`" AS `+text)
		planOf[shape](t, conn, name, `COSTS OFF`, anyCall(t, conn, name))
	}
}

// anyCall executes a prepared statement with NULL for every argument: its plan is the same for all.
func anyCall(t *testing.T, conn *pgx.Conn, name string) string {
	t.Helper()
	n := query[int](t, conn, `SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = $1`, name)
	return `EXECUTE "` + name + `" (` + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + `)`
}

func planOf[T any](t *testing.T, conn *pgx.Conn, what, options, call string) T {
	t.Helper()
	var text string
	if err := conn.QueryRow(t.Context(), `EXPLAIN (`+options+`, FORMAT JSON) `+strings.TrimSuffix(call, " ()")).Scan(&text); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var plans []struct{ Plan T }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// readFew runs the cases, in the form for one and in that for a group.
func readFew(t *testing.T, conn *pgx.Conn, when string) {
	t.Helper()
	texts := statements(t)
	for _, p := range planned {
		for _, name := range []string{p.name, p.name + ".group"} {
			if texts[name] != "" {
				readsFew(t, conn, name+", "+when, `EXECUTE "`+name+`" (`+p.args+`)`)
			}
		}
	}
}

// node is a node of a plan, with the rows that went through it.
type node struct {
	Type    string  `json:"Node Type"`
	Index   string  `json:"Index Name"`
	CTE     string  `json:"CTE Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Joined  float64 `json:"Rows Removed by Join Filter"`
	Plans   []node
}

func (n node) most() float64 {
	most := (n.Rows + n.Removed + n.Joined) * max(n.Loops, 1)
	for _, p := range n.Plans {
		most = max(most, p.most())
	}
	return most
}

func (n node) tree(indent string) string {
	text := fmt.Sprintf("%s%s %s%s: %.0f times %.0f rows, without %.0f\n", indent, n.Type, n.Index, n.CTE, n.Loops, n.Rows, n.Removed+n.Joined)
	for _, p := range n.Plans {
		text += p.tree(indent + "  ")
	}
	return text
}

// readsFew runs a statement, rolls it back, and fails if any part of its plan processed more than a
// few times the rows that it concerns.
func readsFew(t *testing.T, conn *pgx.Conn, what, call string) {
	t.Helper()
	execute(t, conn, `BEGIN`)
	defer execute(t, conn, `ROLLBACK`)
	plan := planOf[node](t, conn, what, `ANALYZE`, call)
	if most := plan.most(); most == 0 || most > 1000 { // no rows at all would prove nothing
		t.Errorf("%s touches %.0f rows, want 1 to 1000:\n%s", what, most, plan.tree(""))
	}
}
