package holdfasttest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A file is a SQLite database that is used by one test of the process after another.
type file struct {
	path  string
	info  os.FileInfo
	db    *sql.DB
	conns shelf
	wipe  string // the statements that empty the tables
	shape string // see readShape
}

var files struct {
	mu   sync.Mutex
	free []*file
}

// reusedFile returns the path of an empty database file that no other test uses.
func reusedFile(t testing.TB) string {
	t.Helper()
	f, err := takeFile()
	if err != nil {
		t.Fatalf("sqlite: %v", err)
	}
	f.conns.lend(t, f.giveBack)
	return f.path
}

func takeFile() (*file, error) {
	files.mu.Lock()
	if n := len(files.free); n > 0 {
		f := files.free[n-1]
		files.free = files.free[:n-1]
		files.mu.Unlock()
		return f, nil
	}
	files.mu.Unlock()
	return newFile()
}

func newFile() (*file, error) {
	folder, err := os.MkdirTemp("", "holdfast-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "holdfast.db")
	f := &file{path: path, conns: shelf{where: path}}
	if err := f.make(); err != nil {
		return nil, errors.Join(err, f.drop())
	}
	return f, nil
}

func (f *file) make() error {
	err := writeEmpty(f.path)
	if err != nil {
		return err
	}
	if f.info, err = os.Stat(f.path); err != nil {
		return err
	}
	if f.db, err = sql.Open("sqlite", f.path); err != nil {
		return err
	}
	f.db.SetMaxOpenConns(1)
	if f.shape, err = f.readShape(); err != nil {
		return err
	}
	return f.db.QueryRow(fileWipe).Scan(&f.wipe)
}

// readShape returns a digest of everything that a test must not change. Tables that a test creates are such a change:
// dropping them would invalidate every prepared statement, as a new file does.
func (f *file) readShape() (shape string, err error) {
	err = f.db.QueryRow(fileShape).Scan(&shape)
	return shape, err
}

// giveBack returns the file to the pool for the next test. A file that cannot be reset is deleted.
func (f *file) giveBack() {
	if f.empty() != nil {
		_ = f.drop()
		return
	}
	files.mu.Lock()
	defer files.mu.Unlock()
	files.free = append(files.free, f)
}

// empty empties the tables. It returns an error if the test has changed anything else.
func (f *file) empty() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if !os.SameFile(info, f.info) || info.Mode() != f.info.Mode() {
		return errors.New("a test has replaced the file or changed its mode")
	}
	if _, err := f.db.ExecContext(ctx, f.wipe); err != nil {
		return err
	}
	shape, err := f.readShape()
	if err == nil && shape != f.shape {
		err = errors.New("a test has changed the schema")
	}
	return err
}

func (f *file) drop() error {
	err := f.conns.Close()
	if f.db != nil {
		err = errors.Join(err, f.db.Close())
	}
	return errors.Join(err, os.RemoveAll(filepath.Dir(f.path)))
}

// dropFiles deletes the files in the pool.
func dropFiles() {
	files.mu.Lock()
	all := files.free
	files.free = nil
	files.mu.Unlock()
	for _, f := range all {
		_ = f.drop()
	}
}

// fileWipe generates the statements that empty the tables. The initial rows stay: the migrations, the clock, which is
// reset, and the secret.
const fileWipe = `SELECT 'BEGIN IMMEDIATE; UPDATE holdfast_clock SET shift = 0, meets = 0; ' || group_concat('DELETE FROM ' || name, '; ') || '; COMMIT'
  FROM sqlite_master WHERE type = 'table' AND name NOT IN ('holdfast_migration', 'holdfast_clock', 'holdfast_secret')`

// fileShape selects the schema and its migrations.
const fileShape = `SELECT (SELECT group_concat(type || name || coalesce(sql, ''), ';') FROM (SELECT * FROM sqlite_master ORDER BY name))
       || (SELECT group_concat(quote(name), ';') FROM (SELECT * FROM holdfast_migration ORDER BY name))
       || (SELECT user_version FROM pragma_user_version) || ' ' || (SELECT application_id FROM pragma_application_id)
       || (SELECT journal_mode FROM pragma_journal_mode) || (SELECT hex(value) FROM holdfast_secret)`
