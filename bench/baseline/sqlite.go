package baseline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver named "sqlite"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// SQLite writes through one connection, with a transaction a call. It is safe
// for concurrent use: callers wait for the connection.
type SQLite struct {
	db    *sql.DB
	stmts map[string]*sql.Stmt
}

var _ System = (*SQLite)(nil)

// liteTexts are the statements. The event's text is made here and not in SQL:
// the update has told all that it says.
var liteTexts = map[string]string{
	"create": `INSERT INTO baseline_entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?) ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING`,
	"transition": `UPDATE baseline_entity SET status = ?, version = version + 1, updated_at = ?
		WHERE shard = ? AND workspace = ? AND lifecycle = ? AND id = ? AND status = ?
		RETURNING version, data, created_at`,
	"history": `INSERT INTO baseline_history (shard, id, n, workspace, stream, version, name, data, at)
		VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?)`,
	"append": `UPDATE baseline_stream SET head = head + 1 WHERE shard = ? AND workspace = ? AND name = ? AND head = ?`,
	"append.first": `INSERT INTO baseline_stream (shard, workspace, name, head) VALUES (?, ?, ?, 0)
		ON CONFLICT (shard, workspace, name) DO NOTHING`,
	"event": `INSERT INTO baseline_event (shard, id, n, workspace, stream, version, name, data, at)
		VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?)`,
	"inc": `UPDATE baseline_scope SET version = version + 1, updated_at = ?1,
		state = json_set(state, '$.' || ?6, json_extract(state, '$.' || ?6) + ?7)
		WHERE shard = ?2 AND workspace = ?3 AND kind = ?4 AND id = ?5 AND json_type(state, '$.' || ?6) = 'integer'
		RETURNING version, json_extract(state, '$.' || ?6)`,
	"put": `INSERT INTO baseline_scope (shard, workspace, kind, id, version, state, created_at, updated_at)
		VALUES (?, ?, ?, ?, 0, ?, ?, ?) ON CONFLICT (shard, workspace, kind, id) DO UPDATE
		SET version = version + 1, state = excluded.state, updated_at = excluded.updated_at`,
	"scope": `SELECT version, state FROM baseline_scope WHERE shard = ? AND workspace = ? AND kind = ? AND id = ?`,
	"swap": `UPDATE baseline_scope SET version = version + 1, state = ?6, updated_at = ?7
		WHERE shard = ?1 AND workspace = ?2 AND kind = ?3 AND id = ?4 AND version = ?5 RETURNING version`,
	"wallet.put": `INSERT INTO baseline_wallet (shard, workspace, id, version, balance, reserved, created_at, updated_at)
		VALUES (?1, ?2, ?3, 0, ?4, 0, ?5, ?5) ON CONFLICT (shard, workspace, id) DO UPDATE
		SET version = version + 1, balance = excluded.balance, reserved = 0, updated_at = excluded.updated_at`,
	"wallet.able": `SELECT 1 FROM baseline_wallet WHERE shard = ? AND workspace = ? AND id = ? AND balance >= ? AND reserved + ? >= 0`,
	"wallet.move": `UPDATE baseline_wallet SET version = version + 1, balance = balance - ?4, reserved = reserved + ?5, updated_at = ?6
		WHERE shard = ?1 AND workspace = ?2 AND id = ?3
		RETURNING version, balance, reserved`,
	"task.add": `INSERT INTO baseline_task
		(shard, workspace, queue, id, version, state, due_at, input, failures, epoch, deaths, created_at, updated_at)
		VALUES (?1, ?2, ?3, ?4, 0, 'due', ?6, ?5, 0, 0, 0, ?6, ?6) ON CONFLICT (shard, workspace, queue, id) DO NOTHING`,
	"task.lease": `UPDATE baseline_task SET holder = ?4, epoch = epoch + 1, until = ?6
		WHERE shard = ?1 AND workspace = ?2 AND queue = ?3 AND id IN (
			SELECT id FROM baseline_task
			WHERE shard = ?1 AND workspace = ?2 AND queue = ?3 AND state = 'due' AND holder IS NULL AND due_at <= ?5
			ORDER BY due_at LIMIT ?7)
		RETURNING queue, id, epoch, until, input`,
	"task.ack": `UPDATE baseline_task SET state = 'done', version = version + 1, output = ?6, error = NULL,
		due_at = ?7, holder = NULL, until = NULL, updated_at = ?7
		WHERE shard = ?1 AND workspace = ?2 AND queue = ?3 AND id = ?4 AND epoch = ?5 AND until > ?7
		RETURNING version, failures`,
	"run.start": `INSERT INTO baseline_run
		(shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, started_at, updated_at)
		VALUES (?1, ?2, ?3, 'five@1', ?4, 'RUNNING', 1, ?5, '{}', '{}', ?6, 1, 0, ?7, ?7, ?7)
		ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING RETURNING version`,
	"run.add": `INSERT INTO baseline_step
		(shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, holder, epoch, until, deaths, timeout, taken_at, begun, uncertain, safety, unknown, created_at, started_at)
		VALUES (?1, ?2, ?3, ?4, 1, ?5, 'task', ?4, 'RUNNING', ?6, 1, 0, ?7, 1, ?8, 0, 900000, ?9, 0, 0, '', '', ?9, ?9)`,
	"run.done": `UPDATE baseline_step SET status = 'COMPLETED', output = ?5, holder = NULL, until = NULL, finished_at = ?6
		WHERE shard = ?1 AND workspace = ?2 AND run = ?3 AND name = ?4 AND visit = 1 AND epoch = 1 AND until > ?6 RETURNING n`,
	"run.move": `UPDATE baseline_run SET status = CASE WHEN ?4 = '' THEN 'COMPLETED' ELSE 'RUNNING' END, step = CASE WHEN ?4 = '' THEN step ELSE ?4 END,
		version = version + 2, output = ?5, finished_at = CASE WHEN ?4 = '' THEN ?6 END, updated_at = ?6
		WHERE shard = ?1 AND workspace = ?2 AND id = ?3 RETURNING version`,
	"batch.create": `INSERT INTO baseline_batch
		(shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested,
		 items, next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at)
		VALUES (?1, ?2, ?3, ?4, ?5, 'PENDING', ?6, 3, 5, 900000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?7, ?7, ?7)
		ON CONFLICT (shard, workspace, id) DO NOTHING`,
	"batch.add": `UPDATE baseline_batch SET items = items + ?4, version = version + 1, updated_at = ?5
		WHERE shard = ?1 AND workspace = ?2 AND id = ?3 AND NOT sealed AND NOT cancel_requested
		RETURNING items, version`,
	"batch.open": `SELECT b.wallet, b.next, min(?4, b.parallel - b.running), w.balance, w.version
		FROM baseline_batch AS b JOIN baseline_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
		WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?3
		AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel AND b.next < b.items`,
	"batch.taken": `UPDATE baseline_batch SET status = 'RUNNING', next = next + ?4, running = running + ?4, charged = charged + ?5,
		version = version + 1, served_at = ?6, updated_at = ?6
		WHERE shard = ?1 AND workspace = ?2 AND id = ?3
		RETURNING version`,
	"batch.settled": `UPDATE baseline_batch SET running = running - ?4, succeeded = succeeded + ?4, version = version + ?4, updated_at = ?5
		WHERE shard = ?1 AND workspace = ?2 AND id = ?3
		RETURNING version, items - next + waiting, running, succeeded, failed, cancelled, accepted`,
	"batch.count": `SELECT b.items, b.next, b.running, b.succeeded, b.charged, b.version, w.balance,
		(SELECT count(*) FROM baseline_item AS i
		  WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?3 AND i.state = 'succeeded' AND i.epoch = 1 AND i.charged = i.cost),
		(SELECT count(*) FROM baseline_ledger AS l WHERE l.shard = ?1 AND l.workspace = ?2 AND l.wallet = b.wallet),
		(SELECT coalesce(sum(l.delta), 0) FROM baseline_ledger AS l WHERE l.shard = ?1 AND l.workspace = ?2 AND l.wallet = b.wallet),
		(SELECT count(*) FROM baseline_history AS h WHERE h.shard = ?1 AND h.workspace = ?2 AND h.stream = '$batch/' || ?3 AND h.name = 'itemSucceeded')
		FROM baseline_batch AS b JOIN baseline_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
		WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?3`,
	"item.add": `INSERT INTO baseline_item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, 0, 'pending', ?, 0, 0, 0, 0, 0, ?)`,
	"item.due": `SELECT key, cost, epoch + 1, input FROM baseline_item
		WHERE shard = ?1 AND workspace = ?2 AND batch = ?3 AND n > ?4 AND n <= ?4 + ?5
		ORDER BY n`,
	"item.take": `UPDATE baseline_item SET state = 'running', charged = cost, holder = ?6, epoch = epoch + 1, until = ?7, taken_at = ?8, updated_at = ?8
		WHERE shard = ?1 AND workspace = ?2 AND batch = ?3 AND n > ?4 AND n <= ?4 + ?5`,
	"item.settle": `UPDATE baseline_item SET state = 'succeeded', output = ?6, holder = NULL, until = NULL, updated_at = ?7
		WHERE shard = ?1 AND workspace = ?2 AND batch = ?3 AND key = ?4 AND state = 'running' AND epoch = ?5 AND until > ?7
		RETURNING failures, deaths`,
	"wallet.spend": `UPDATE baseline_wallet SET balance = balance - ?4, version = version + ?5, updated_at = ?6
		WHERE shard = ?1 AND workspace = ?2 AND id = ?3`,
	"ledger.charge": `INSERT INTO baseline_ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
		VALUES (?, ?, ?, ?, ?, ?, 'charge', ?, ?)`,
}

// OpenSQLite opens or makes the file: WAL, synchronous=FULL, one connection.
// [SQLite.Close] closes it.
func OpenSQLite(ctx context.Context, path string) (*SQLite, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	db.SetMaxOpenConns(1)
	s := &SQLite{db: db, stmts: make(map[string]*sql.Stmt)}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return s, nil
}

func (s *SQLite) start(ctx context.Context) error {
	schema, err := files.ReadFile("sql/sqlite.schema.sql")
	if err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, string(schema)); err != nil {
		return err
	}
	for name, text := range liteTexts {
		if s.stmts[name], err = s.db.PrepareContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Close closes the file.
func (s *SQLite) Close() { _ = s.db.Close() }

// Create makes an entity with its event, unless there is one.
func (s *SQLite) Create(ctx context.Context, a New) (e Entity, err error) {
	err = s.update(ctx, func(q lite) error { e, err = q.create(ctx, a); return err })
	return e, err
}

// Transition moves an entity that is in the status From, with its event.
func (s *SQLite) Transition(ctx context.Context, a Move) (e Entity, err error) {
	err = s.update(ctx, func(q lite) error { e, err = q.transition(ctx, a); return err })
	return e, err
}

// Append adds an event to a stream at its expected version.
func (s *SQLite) Append(ctx context.Context, a Append) (n int64, err error) {
	err = s.update(ctx, func(q lite) error { n, err = q.append(ctx, a); return err })
	return n, err
}

// Inc adds to a number of a scope, with its event.
func (s *SQLite) Inc(ctx context.Context, a Inc) (n int64, err error) {
	err = s.update(ctx, func(q lite) error { n, err = q.inc(ctx, a); return err })
	return n, err
}

// PutScope makes a scope or replaces its state.
func (s *SQLite) PutScope(ctx context.Context, kind, id, state string) error {
	return s.update(ctx, func(q lite) error { return q.put(ctx, kind, id, state) })
}

func (s *SQLite) update(ctx context.Context, f func(lite) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	stmt := func(name string) *sql.Stmt { return tx.StmtContext(ctx, s.stmts[name]) }
	if err := f(stmt); err != nil {
		return err
	}
	return tx.Commit()
}

// lite gives the prepared statements of one transaction.
type lite func(name string) *sql.Stmt

func (q lite) create(ctx context.Context, a New) (Entity, error) {
	at := clock.Now().UnixMilli()
	if err := one(q("create").ExecContext(ctx, shard, workspace, a.Lifecycle, a.ID, a.Status, a.Data, at, at)); err != nil {
		return Entity{}, err
	}
	e := Entity{Status: a.Status, Data: []byte(a.Data), CreatedAt: time.UnixMilli(at).UTC(), UpdatedAt: time.UnixMilli(at).UTC()}
	return e, q.history(ctx, "$entity/"+a.Lifecycle+"/"+a.ID, 0, "created", `{"to":`+quote(a.Status)+`}`, at)
}

func (q lite) transition(ctx context.Context, a Move) (Entity, error) {
	at := clock.Now().UnixMilli()
	e := Entity{Status: a.To, UpdatedAt: time.UnixMilli(at).UTC()}
	var created int64
	err := q("transition").QueryRowContext(ctx, a.To, at, shard, workspace, a.Lifecycle, a.ID, a.From).Scan(&e.Version, &e.Data, &created)
	if err != nil {
		return Entity{}, absent(err)
	}
	e.CreatedAt = time.UnixMilli(created).UTC()
	data := `{"from":` + quote(a.From) + `,"to":` + quote(a.To) + `,"note":null}`
	return e, q.history(ctx, "$entity/"+a.Lifecycle+"/"+a.ID, e.Version, a.Event, data, at)
}

func (q lite) append(ctx context.Context, a Append) (int64, error) {
	res, err := sql.Result(nil), error(nil)
	if a.Want < 0 {
		res, err = q("append.first").ExecContext(ctx, shard, workspace, a.Stream)
	} else {
		res, err = q("append").ExecContext(ctx, shard, workspace, a.Stream, a.Want)
	}
	if err := one(res, err); err != nil {
		return 0, err
	}
	id := newID()
	_, err = q("event").ExecContext(ctx, shard, id[:], workspace, a.Stream, a.Want+1, a.Name, a.Data, clock.Now().UnixMilli())
	return a.Want + 1, err
}

func (q lite) inc(ctx context.Context, a Inc) (int64, error) {
	at := clock.Now().UnixMilli()
	var version, value int64
	err := q("inc").QueryRowContext(ctx, at, shard, workspace, a.Kind, a.ID, a.Field, a.By).Scan(&version, &value)
	if err != nil {
		return 0, absent(err)
	}
	data := fmt.Sprintf(`{"field":%s,"by":%d,"value":%d}`, quote(a.Field), a.By, value)
	return value, q.history(ctx, "$scope/"+a.Kind+"/"+a.ID, version, "inc", data, at)
}

func (q lite) put(ctx context.Context, kind, id, state string) error {
	now := clock.Now().UnixMilli()
	_, err := q("put").ExecContext(ctx, shard, workspace, kind, id, state, now, now)
	return err
}

func (q lite) history(ctx context.Context, stream string, version int64, name, data string, at int64) error {
	id := newID()
	_, err := q("history").ExecContext(ctx, shard, id[:], workspace, stream, version, name, data, at)
	return err
}

// quote makes a JSON string of a name. The names here are plain.
func quote(s string) string { return `"` + s + `"` }

// one refuses a change of no row.
func one(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); n != 0 || err != nil {
		return err
	}
	return ErrRefused
}

func absent(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrRefused
	}
	return err
}
