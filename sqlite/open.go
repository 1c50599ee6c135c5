package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver named "sqlite"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// oldest is the first library version without the WAL-reset bug, which could corrupt a database
// with several writing connections.
var oldest = [3]int{3, 51, 3}

// checkedWhole is the size up to which the whole file is checked at the start. The check of a
// larger file would delay the start; damage in it is reported when it is read.
const checkedWhole = 64 << 20

// open turns a path into a usable store, in an order that changes nothing before the file is known
// to be ours or empty.
func (d *Database) open(ctx context.Context, o store.Options, migrate bool) (*adapter, store.Migrated, error) {
	s := &adapter{log: o.Log, name: d.name(), owned: d.db == nil, plain: o.Plain, write: d.db, read: d.db, wall: wallClock{wrong: d.wrong}, migrations: d.migrations, fence: store.NewFence()}
	s.grouper = store.NewGrouper(s.rounds())
	if d.readers < 0 {
		return nil, store.Migrated{}, fault.New(fault.Validation, "Readers must not be negative, got %d", d.readers)
	}
	if s.owned {
		if _, err := os.Stat(d.path); o.Restored && errors.Is(err, fs.ErrNotExist) {
			return nil, store.Migrated{}, fault.New(fault.NotFound, "%s does not exist: restore the backup first. Nothing was changed", d.path)
		}
		if err := d.inspect(ctx, migrate); err != nil {
			return nil, store.Migrated{}, err
		}
		if err := s.remember(d.path); err != nil {
			return nil, store.Migrated{}, err
		}
		if err := d.connect(s); err != nil {
			return nil, store.Migrated{}, err
		}
	}
	done, err := s.start(ctx, o, migrate)
	if err != nil {
		_ = s.Close()
		return nil, store.Migrated{}, err
	}
	return s, done, nil
}

func (d *Database) name() string {
	if d.path == "" {
		return "the given database"
	}
	return d.path
}

// connect opens the one connection that writes and the few that read.
func (d *Database) connect(s *adapter) (err error) {
	if s.write, err = sql.Open("sqlite", dsn(d.path, "_txlock", "immediate", "_pragma", "journal_mode(WAL)", "_pragma", "synchronous(FULL)")); err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	s.write.SetMaxOpenConns(1)
	if s.read, err = sql.Open("sqlite", dsn(d.path, "_pragma", "query_only(1)")); err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	readers := cmp.Or(d.readers, 4)
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	return nil
}

// dsn names the file as a URI, because a path may contain any character. The driver's own busy
// timeout is short: the store retries by itself, and checks the caller's context between the
// attempts.
func dsn(path string, params ...string) string {
	q := url.Values{"_pragma": {"busy_timeout(50)"}}
	for i := 0; i < len(params); i += 2 {
		q.Add(params[i], params[i+1])
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: q.Encode()}).String()
}

// start checks the library and the schema, and prepares the verbs.
func (s *adapter) start(ctx context.Context, o store.Options, migrate bool) (store.Migrated, error) {
	if err := s.checkLibrary(ctx); err != nil {
		return store.Migrated{}, err
	}
	done, err := s.migrate(ctx, o, migrate)
	if err != nil {
		return done, err
	}
	if err := s.prepare(ctx); err != nil {
		return done, err
	}
	if err := s.startFence(ctx); err != nil {
		return done, err
	}
	return done, s.adjustTimeAtStart(ctx)
}

func (s *adapter) checkLibrary(ctx context.Context) error {
	var version string
	err := store.Retry(ctx, func() error {
		return s.fault(s.read.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version))
	})
	if err != nil {
		return err
	}
	s.version = "SQLite " + version
	if older(version, oldest) {
		return fault.New(fault.DatabaseTooOld,
			"the SQLite library has version %s, but versions before %d.%d.%d can corrupt a database in WAL mode: build with a newer driver",
			version, oldest[0], oldest[1], oldest[2])
	}
	return nil
}

func older(version string, than [3]int) bool {
	parts := strings.SplitN(version, ".", 3)
	for i, want := range than {
		have := 0
		if i < len(parts) {
			have, _ = strconv.Atoi(parts[i])
		}
		if have != want {
			return have < want
		}
	}
	return false
}

// inspect refuses a file that is not a database, is damaged, is read-only or, with [Dedicated], has
// only another program's tables. It changes nothing in an existing file, not even the journal mode. If
// there is no file, it creates one, provided that migrate is set.
func (d *Database) inspect(ctx context.Context, migrate bool) error {
	fresh, err := d.inspectFile()
	if err != nil {
		return err
	}
	if fresh {
		return d.createFile(migrate)
	}
	if !writable(d.path) {
		return mapCode(codeReadOnly, d.path, nil)
	}
	if err := d.inspectInside(ctx, migrate); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(d.path, "_txlock", "immediate"))
	if err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	defer db.Close()
	return store.Retry(ctx, func() error { return d.inspectLock(ctx, db) })
}

// createFile creates the file with access for its owner only; the log that SQLite creates beside it
// gets the same mode. It refuses to create a database that was not requested.
func (d *Database) createFile(migrate bool) error {
	if migrate {
		f, err := os.OpenFile(d.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return nil // another process has just created it
		}
		if err != nil {
			return mapCode(codeCantOpen, d.path, err)
		}
		return f.Close()
	}
	known, err := store.LoadMigrations(d.migrations)
	if err != nil {
		return err
	}
	return store.Behind(0, len(known))
}

// inspectInside reads the tables. If there is a log beside the file, the file is opened read-only:
// closing it must not move the log into a refused file. (Without a log it is not, because a
// read-only connection leaves an empty log behind.)
func (d *Database) inspectInside(ctx context.Context, migrate bool) error {
	mode := "rw"
	if log, err := os.Stat(d.path + "-wal"); err == nil && log.Size() > 0 {
		mode = "ro"
	}
	db, err := sql.Open("sqlite", dsn(d.path, "mode", mode))
	if err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	return store.Retry(ctx, func() error { return d.inspectTables(ctx, db, migrate) })
}

// inspectFile checks the file without opening it: closing a second descriptor of a database would
// drop the locks that this process has on it.
func (d *Database) inspectFile() (fresh bool, err error) {
	switch {
	case d.path == "" || d.path == ":memory:":
		return false, fault.New(fault.Validation,
			"%q is not a file path: use a file, for example in a temporary folder. In-memory databases are not supported, because they would lose acknowledged writes", d.path)
	case strings.HasPrefix(d.path, "file:"):
		return false, fault.New(fault.Validation, "%q is a URI, not a file path: specify the path without the prefix file:", d.path)
	}
	info, err := os.Stat(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, d.inspectFolder()
	}
	if err != nil {
		return false, fault.New(fault.Unavailable, "cannot read the attributes of %s: %v", d.path, err).Wrap(err)
	}
	if !info.Mode().IsRegular() {
		return false, fault.New(fault.DatabaseForeign, "%s is not a regular file: specify a different file", d.path)
	}
	// SQLite takes an empty file for a new database and deletes the log beside it. A log shows that
	// the file was not new, but was truncated.
	if log, err := os.Stat(d.path + "-wal"); info.Size() == 0 && err == nil && log.Size() > 0 {
		return false, fault.New(fault.DatabaseDamaged,
			"%s is empty but has a write-ahead log beside it, so it was truncated: restore it from a backup. Nothing was changed", d.path)
	}
	return false, nil
}

func (d *Database) inspectFolder() error {
	folder := filepath.Dir(d.path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fault.New(fault.NotFound, "database folder %s does not exist or cannot be accessed: create it, or correct the path", folder)
	}
	return nil
}

func (d *Database) inspectTables(ctx context.Context, db *sql.DB, migrate bool) error {
	var ours, others int
	err := db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE name LIKE 'holdfast\_%' ESCAPE '\'),
		count(*) FILTER (WHERE name NOT LIKE 'holdfast\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\')
		FROM sqlite_schema WHERE type = 'table'`).Scan(&ours, &others)
	if err != nil {
		return mapError(err, d.path)
	}
	if d.alone && ours == 0 && others > 0 {
		return fault.New(fault.DatabaseForeign,
			"%s contains another program's tables (%d) but none of Holdfast's: choose another file, or add Holdfast's tables with \"holdfast migrate\". Nothing was changed", d.path, others)
	}
	if err := d.inspectPages(ctx, db); err != nil {
		return err
	}
	return d.inspectSchema(ctx, db, migrate)
}

// inspectSchema compares the migrations of the file with those of this program.
func (d *Database) inspectSchema(ctx context.Context, db *sql.DB, migrate bool) error {
	known, err := store.LoadMigrations(d.migrations)
	if err != nil {
		return err
	}
	have, err := (&adapter{name: d.path}).applied(ctx, db)
	if err != nil {
		return err
	}
	pending, err := store.Pending(known, have)
	if err == nil && len(pending) > 0 && !migrate {
		err = store.Behind(len(have), len(known))
	}
	return err
}

// inspectLock begins and ends a writing transaction, which fails for a read-only file.
func (d *Database) inspectLock(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return mapError(err, d.path)
	}
	return tx.Rollback()
}

func (d *Database) inspectPages(ctx context.Context, db *sql.DB) error {
	var size int64
	if err := db.QueryRowContext(ctx, `SELECT c.page_count * s.page_size FROM pragma_page_count AS c, pragma_page_size AS s`).Scan(&size); err != nil {
		return mapError(err, d.path)
	}
	if size > checkedWhole {
		return nil
	}
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&verdict); err != nil {
		return mapError(err, d.path)
	}
	if verdict != "ok" {
		return fault.New(fault.DatabaseDamaged, "%s is damaged (%s): restore it from a backup. Nothing was changed", d.path, verdict)
	}
	return nil
}
