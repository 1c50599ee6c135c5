package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/baseline"
	"github.com/holdfast-go/holdfast/sqlite"
)

// openSQLite makes a file for each system.
func openSQLite(ctx context.Context, c config) (*place, error) {
	if !storeWanted(c, "sqlite") {
		return nil, nil
	}
	dir, err := os.MkdirTemp(c.dir, ".bench-")
	if err != nil {
		return nil, err
	}
	p := &place{store: "sqlite", account: accountSQLite, close: func() { _ = os.RemoveAll(dir) }}
	if err := p.openSQLite(ctx, c, dir); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// inFile opens the hand-written SQL in a file.
func (p *place) inFile(ctx context.Context, file string) (*baseline.SQLite, error) {
	s, err := baseline.OpenSQLite(ctx, file)
	if err == nil {
		p.finally(s.Close)
	}
	return s, err
}

// inFileBest opens the hand-written SQL that groups calls.
func (p *place) inFileBest(ctx context.Context, file string) (*baseline.SQLiteCoalesced, error) {
	s, err := p.inFile(ctx, file)
	if err != nil {
		return nil, err
	}
	all, err := s.Coalesced(ctx)
	if err == nil {
		p.finally(all.Close)
	}
	return all, err
}

func (p *place) openSQLite(ctx context.Context, c config, dir string) error {
	file := func(name string) string { return filepath.Join(dir, name+".db") }
	mine := holdfastSystem{open: func(ctx context.Context, parts ...holdfast.Part) (*holdfast.Engine, error) {
		return holdfast.Open(ctx, sqlite.File(file(ours)), holdfast.Config{}, parts...)
	}}
	if err := p.openOurs(ctx, &mine); err != nil {
		return err
	}
	one, err := p.inFile(ctx, file(sqlOne))
	if err != nil {
		return err
	}
	all, err := p.inFileBest(ctx, file(sqlBest))
	if err != nil {
		return err
	}
	// The rows of sqlOne are made through a second connection, which groups calls.
	seeder, err := p.inFileBest(ctx, file(sqlOne))
	if err != nil {
		return err
	}
	p.systems = []named{
		{name: ours, system: mine, seeder: mine, file: file(ours)},
		{name: sqlOne, system: sqlSystem{one}, seeder: sqlSystem{seeder}, file: file(sqlOne)},
		{name: sqlBest, system: bestSystem{sqlSystem{all}, all}, seeder: sqlSystem{all}, file: file(sqlBest)},
		{name: sqlSwap, system: swapSystem{sqlSystem{one}}, seeder: sqlSystem{one}, file: file(sqlOne), only: "hot-row"},
	}
	p.addPeers(ctx, c, "sqlite:"+absolute(file(peerDBOS)), peerDBOS)
	return nil
}

// accountSQLite reads the log itself: its frames are the bytes written, and each
// commit marks its last frame. A read transaction that is open during the slice
// keeps SQLite from restarting the log, which also makes the slice slower.
func accountSQLite(ctx context.Context, s named, work func() (int, error)) (n counters, units int, err error) {
	db, err := openFile(s)
	if err != nil {
		return n, 0, err
	}
	defer db.Close()
	var busy, log, done int
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done); err != nil {
		return n, 0, err
	}
	if busy != 0 {
		return n, 0, errors.New("the write-ahead log could not be emptied")
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return n, 0, err
	}
	defer tx.Rollback()
	var one int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&one); err != nil {
		return n, 0, err
	}
	if units, err = work(); err != nil {
		return n, 0, err
	}
	n, err = readLog(s.file + "-wal")
	return n, units, err
}

// openFile opens the file of a system once more.
func openFile(s named) (*sql.DB, error) {
	dsn := (&url.URL{Scheme: "file", Path: filepath.ToSlash(absolute(s.file)), RawQuery: "_pragma=busy_timeout(5000)"}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// readLog counts the bytes and the commits of a log in SQLite's WAL format: a
// header of 32 bytes, then frames of 24 bytes and a page, of which the second
// word is not zero if the frame ends a commit.
func readLog(path string) (n counters, err error) {
	f, err := os.Open(path)
	if err != nil {
		return n, err
	}
	defer f.Close()
	header := make([]byte, 32)
	if _, err := io.ReadFull(f, header); err != nil {
		return n, fmt.Errorf("cannot read the header of the write-ahead log: %w", err)
	}
	page := int64(binary.BigEndian.Uint32(header[8:]))
	salt := string(header[16:24])
	frame := make([]byte, 24)
	for at := int64(32); ; at += 24 + page {
		if _, err := f.ReadAt(frame, at); err != nil || string(frame[8:16]) != salt {
			return n, nil
		}
		n.wal += 24 + page
		if binary.BigEndian.Uint32(frame[4:]) != 0 {
			n.transactions++
		}
	}
}
