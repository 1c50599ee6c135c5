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

// SQLite writes through one connection, with one transaction per call. It is safe
// for concurrent use: callers wait for the connection.
type SQLite struct {
	liteCalls
	db    *sql.DB
	texts map[string]string
	stmts map[string]*sql.Stmt
}

var _ System = (*SQLite)(nil)

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
	s.update = s.transact
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return s, nil
}

func (s *SQLite) start(ctx context.Context) error {
	texts, err := statements("sqlite")
	if err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, texts["schema"]); err != nil {
		return err
	}
	delete(texts, "schema")
	s.texts = texts
	for name, text := range texts {
		if s.stmts[name], err = s.db.PrepareContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Close closes the file.
func (s *SQLite) Close() { _ = s.db.Close() }

func (s *SQLite) transact(ctx context.Context, f liteCall) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	stmt := func(name string) *sql.Stmt { return tx.StmtContext(ctx, s.stmts[name]) }
	if err := f(ctx, stmt); err != nil {
		return err
	}
	return tx.Commit()
}

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

// one refuses a call that changed no row.
func one(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); n != 0 || err != nil {
		return err
	}
	return ErrRefused
}

// absent refuses a call that found no row.
func absent(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrRefused
	}
	return err
}
