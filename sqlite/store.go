package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/sharedsql"
	"github.com/holdfast-go/holdfast/internal/store"
)

//go:embed sql/*/*.sql migrations/*.sql
var files embed.FS

// adapter is an open SQLite database. One connection writes; the others read,
// and see what was last committed. Safe for concurrent use.
type adapter struct {
	log     *slog.Logger
	name    string
	version string
	owned   bool // the file was opened by path, not through a pool of the program
	plain   bool // for tests: never run a fast script

	write, read *sql.DB
	grouper     *store.Grouper
	wall        wallClock
	stepping    sync.Mutex // held by adjustTime: one caller at a time compensates a machine clock that was set back
	// link is the one writing connection of our own file, with its statements; turn is its mutex.
	// With a pool of the program, each transaction takes a connection from the pool.
	link          *sql.Conn
	turn          chan struct{}
	waits, waited atomic.Int64 // for the turn: how often, and how long in ns
	scripts       map[string]*script
	writes        prepared // on the writing connection
	reads         prepared

	fence *store.Fence
	// opened is the file at path when it was opened; nil if it is not known.
	opened os.FileInfo
	path   string
	looked atomic.Int64 // when the generation was read last, in ns since the process started

	migrations fs.FS
}

// prepared are statements by their text, each prepared at its first use: a program uses some of the
// hundreds, and starts faster.
type prepared struct {
	mu sync.Mutex
	by map[string]*sql.Stmt
}

// get returns a statement, and prepares it at its first use.
func (p *prepared) get(ctx context.Context, text string, prepare func(context.Context, string) (*sql.Stmt, error)) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if st := p.by[text]; st != nil {
		return st, nil
	}
	st, err := prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	if p.by == nil {
		p.by = make(map[string]*sql.Stmt)
	}
	p.by[text] = st
	return st, nil
}

// close closes all statements: an open one keeps the file open.
func (p *prepared) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, st := range p.by {
		_ = st.Close()
	}
	p.by = nil
}

var _ store.Store = (*adapter)(nil)

func sqlFiles() (store.SQLFiles, error) {
	all := make(store.SQLFiles)
	err := all.Add(files, "sql")
	if err == nil {
		// The shared files are written for PostgreSQL. SQLite needs no cast ({text}) and no pg_catalog. before a function
		// ({pg}), stores times as numbers ({no_time}), and stores documents uncompressed ({size}).
		err = sharedsql.Add(all, strings.NewReplacer("{schema}.", "holdfast_", "{text}", "", "{no_time}", "0", "{pg}", "", "{size}", "octet_length"))
	}
	return all, err
}

// Files returns the SQL files before arguments and {now} are filled in. In the shared files, the tokens for the dialect
// are already replaced.
func (opener) Files() (store.SQLFiles, error) { return sqlFiles() }

// Filled returns the text of every verb with {now} left in.
func (opener) Filled() (store.Texts, error) { return filled() }

func filled() (store.Texts, error) {
	all, err := sqlFiles()
	if err != nil {
		return nil, err
	}
	return all.Texts(store.Decls(), arguments)
}

// Texts returns the SQL of every verb.
func (opener) Texts() (store.Texts, error) { return texts() }

func texts() (store.Texts, error) {
	texts, err := filled()
	if err != nil {
		return nil, err
	}
	// If a limit is a bare argument, SQLite prepares the statement again for each value.
	for name, text := range texts {
		texts[name] = strings.ReplaceAll(strings.ReplaceAll(text, "{now}", now), "LIMIT ?", "LIMIT +?")
	}
	for _, d := range store.Decls() {
		if d.NoWait != "" { // SQLite has one writer, so nothing waits
			texts[d.Name] = texts[d.NoWait]
		}
	}
	return texts, nil
}

// arguments numbers the arguments of a verb: the command's, then, if it has child rows, all of
// them as a list, and those of one child row.
func arguments(_ store.Decl, cols store.Columns, _ bool) store.Filling {
	f := store.Filling{Arguments: make(map[string]string)}
	for i, c := range cols.Members {
		f.Arguments[c.Name] = "?" + strconv.Itoa(i+1)
	}
	list := len(cols.Members) + 1
	columns := make([]string, len(cols.Children))
	for i, c := range cols.Children {
		f.Arguments[c.Name] = "?" + strconv.Itoa(list+i+1)
		columns[i] = fmt.Sprintf("x.value ->> %d AS %s", i, c.Name)
	}
	if len(columns) > 0 {
		f.Tokens = map[string]string{"{children}": fmt.Sprintf("(SELECT %s FROM json_each(?%d) AS x) AS c", strings.Join(columns, ", "), list)}
	}
	return f
}

// parsed returns the scripts of all verbs, and their texts.
var parsed = sync.OnceValues(func() (all parsedScripts, err error) {
	if all.texts, err = texts(); err != nil {
		return all, err
	}
	all.scripts = make(map[string]*script, len(all.texts))
	for name, text := range all.texts {
		if all.scripts[name], err = parseScript(name, text); err != nil {
			return all, err
		}
	}
	// x.fast is a second script of verb x, for its most frequent case. It is tried first; if it changes nothing, script x
	// runs.
	for name, sc := range all.scripts {
		sc.fast = all.scripts[name+".fast"]
	}
	return all, nil
})

type parsedScripts struct {
	texts   store.Texts
	scripts map[string]*script
}

// prepare prepares what commands need. With a pool of the program, every statement is prepared now:
// inside a transaction, a pool of one would have no connection to prepare another statement on.
func (s *adapter) prepare(ctx context.Context) error {
	all, err := parsed()
	if err != nil {
		return err
	}
	if err := all.texts.Missing(store.Decls()); err != nil {
		return err
	}
	if err := s.checkTables(ctx); err != nil {
		return err
	}
	s.scripts = all.scripts
	if s.owned {
		return s.reserveLink(ctx)
	}
	return s.prepareAll(ctx)
}

// prepareAll prepares every statement.
func (s *adapter) prepareAll(ctx context.Context) error {
	for _, sc := range s.scripts {
		for _, st := range sc.all() {
			if _, err := s.writing(ctx, st.text); err != nil {
				return s.damaged(sc.name, err)
			}
		}
		for _, st := range []*statement{sc.look, &sc.do} {
			if st == nil || st == &sc.do && !sc.reads {
				continue
			}
			if _, err := s.reading(ctx, st.text); err != nil {
				return s.damaged(sc.name, err)
			}
		}
	}
	// Statements that belong to no verb: they read the registry's revision and write due notices. damaged needs a name.
	for _, text := range ownTexts() {
		if _, err := s.writing(ctx, text); err != nil {
			return s.damaged("registry.get", err)
		}
	}
	return nil
}

// writing returns a statement on the writing connection, which the caller has.
func (s *adapter) writing(ctx context.Context, text string) (*sql.Stmt, error) {
	prepare := s.write.PrepareContext
	if s.link != nil {
		prepare = s.link.PrepareContext
	}
	return s.writes.get(context.WithoutCancel(ctx), text, prepare)
}

// reading returns a statement on the reading connections.
func (s *adapter) reading(ctx context.Context, text string) (*sql.Stmt, error) {
	return s.reads.get(ctx, text, s.read.PrepareContext)
}

// reserveLink takes the writing connection out of its pool permanently: statements prepared on it then
// need no lookup for each use.
func (s *adapter) reserveLink(ctx context.Context) (err error) {
	if !s.owned {
		return nil
	}
	s.turn = make(chan struct{}, 1)
	s.link, err = s.write.Conn(ctx)
	return s.fault(err)
}

// damaged maps the error of a statement that does not fit the database. The schema number implies
// that it fits, so a table or a column was removed.
func (s *adapter) damaged(verb string, err error) error {
	mapped := s.fault(err)
	if fault.CodeOf(mapped) != fault.Internal {
		return mapped
	}
	return fault.New(fault.DatabaseDamaged, "%s lacks a table or a column that verb %s needs: restore it from a backup. Nothing was changed", s.name, verb).Wrap(err)
}

// Do runs a command and commits it. A read stops when its context ends. A write never passes the context to the driver:
// alone, it is rolled back if the context ends before the commit; in a group, the context counts only until the group
// begins.
func (s *adapter) Do(ctx context.Context, c store.Command) error {
	if err := s.fence.Err(); err != nil {
		return err
	}
	if err := s.adjustTime(ctx); err != nil {
		return err
	}
	sc := s.scripts[c.Decl().Name]
	if sc != nil && sc.reads {
		return store.Retry(ctx, func() error { return s.readOnce(ctx, &sc.do, c, c) })
	}
	if sc != nil && sc.look != nil {
		if found, err := s.looks(ctx, sc, c); err != nil || !found {
			return err
		}
	}
	return s.grouper.Do(ctx, c)
}

// looks reports whether a command may have work.
func (s *adapter) looks(ctx context.Context, sc *script, c store.Command) (found bool, err error) {
	err = store.Retry(ctx, func() error {
		err := s.readOnce(ctx, sc.look, c, nil)
		found = !errors.Is(err, errNothing)
		if !found {
			return nil
		}
		return err
	})
	return found, err
}

var errNothing = errors.New("no row")

// readOnce runs a reading statement with the arguments of c, and passes its rows to wants, if it is
// not nil.
func (s *adapter) readOnce(ctx context.Context, st *statement, c, wants store.Command) error {
	if !s.owned { // in a pool of one, an update may have the only connection
		limit := longTurn
		if c.Decl().Slow {
			limit = store.SlowLimit
		}
		wait, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = wait
	}
	c.Reset()
	var args store.Args
	c.Bind(&args)
	query, err := s.reading(ctx, st.text)
	if err != nil {
		return s.fault(err)
	}
	rows, err := query.QueryContext(ctx, st.args(native(args.Values(0)), nil, &s.wall)...)
	if err != nil {
		return s.fault(err)
	}
	n, err := scanAll(rows, wants, true, nil)
	if err == nil && n == 0 && wants == nil {
		return errNothing
	}
	return s.fault(err)
}

// Update runs f in one transaction that holds the write lock from its start. After a retryable error, such as a lock held
// by another process, nothing was committed, and the whole transaction is repeated: f may run more than once.
func (s *adapter) Update(ctx context.Context, f func(context.Context, store.Conn) error) error {
	if err := s.adjustTime(ctx); err != nil {
		return err
	}
	return store.Retry(ctx, func() error { return s.updateOnce(ctx, f) })
}

func (s *adapter) updateOnce(ctx context.Context, f func(context.Context, store.Conn) error) error {
	link, release, err := s.writer(ctx)
	if err != nil {
		return err
	}
	defer release()
	return s.updateOn(ctx, link, f)
}

func (s *adapter) updateOn(ctx context.Context, link *sql.Conn, f func(context.Context, store.Conn) error) error {
	tx, err := s.begin(ctx, link)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after a commit; after a panic it releases the lock
	c := &conn{store: s, tx: tx}
	defer c.end()
	if err := f(ctx, c); err != nil {
		return err
	}
	if c.failed != nil {
		return c.failed
	}
	if err := c.intact(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return commitFault(err, s.name)
	}
	return nil
}

// longTurn limits how long a write waits for earlier ones. A longer wait means a deadlock: an
// earlier one is waiting for this one.
const longTurn = 30 * time.Second

// writer waits for its turn on the writing connection.
func (s *adapter) writer(ctx context.Context) (link *sql.Conn, release func(), err error) {
	if s.link != nil {
		select {
		case s.turn <- struct{}{}:
			return s.link, s.endTurn, nil
		default:
			began := clock.OfMachine()
			defer func() { s.waits.Add(1); s.waited.Add(int64(clock.OfMachine().Sub(began))) }()
		}
	}
	wait, cancel := context.WithTimeout(ctx, longTurn)
	defer cancel()
	if s.link == nil {
		link, err = s.write.Conn(wait)
		release = func() { _ = link.Close() }
	} else {
		select {
		case s.turn <- struct{}{}:
			return s.link, s.endTurn, nil
		case <-wait.Done():
			err = wait.Err()
		}
	}
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		return nil, nil, fault.New(fault.Unavailable,
			"%s: no connection became free for writing within %s, because a transaction is still open. A function passed to Update must use the context and the Tx that it gets", s.name, longTurn)
	}
	return link, release, s.fault(err)
}

func (s *adapter) endTurn() { <-s.turn }

// begin takes the write lock. The context is not passed on: database/sql would roll back in the
// background when it ends.
func (s *adapter) begin(ctx context.Context, link *sql.Conn) (*sql.Tx, error) {
	tx, err := link.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, s.fault(err)
	}
	if !s.owned { // otherwise begun immediate, through the data source name
		if _, err := tx.Exec(takeLock); err != nil {
			_ = tx.Rollback()
			return nil, s.fault(err)
		}
	}
	if err := s.look(ctx, tx); err != nil {
		_ = tx.Rollback()
		return nil, err
	}
	return tx, nil
}

// Version returns the name of the database and its version.
func (s *adapter) Version() string { return s.version }

// Close waits for calls in flight and closes every connection. A pool of the program stays open.
func (s *adapter) Close() error {
	s.writes.close()
	s.reads.close()
	if s.link != nil {
		_ = s.link.Close()
	}
	if !s.owned {
		return nil
	}
	var err error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			if e := db.Close(); err == nil {
				err = e
			}
		}
	}
	return err
}

func (s *adapter) fault(err error) error { return mapError(err, s.name) }

// Pool returns how many connections are in use, and the maximum.
func (s *adapter) Pool() (busy, size int) {
	for _, p := range s.pools() {
		st := p.Stats()
		busy, size = busy+st.InUse, size+st.MaxOpenConnections
	}
	return busy, size
}

// PoolWaits returns how often callers have waited for a connection, and how long in total: writers for their turn, too.
func (s *adapter) PoolWaits() (n int64, total time.Duration) {
	n, total = s.waits.Load(), time.Duration(s.waited.Load())
	for _, p := range s.pools() {
		st := p.Stats()
		n, total = n+st.WaitCount, total+st.WaitDuration
	}
	return n, total
}

func (s *adapter) pools() []*sql.DB {
	if s.write == s.read {
		return []*sql.DB{s.read}
	}
	return []*sql.DB{s.read, s.write}
}
