package store

import (
	"context"
	"time"
)

var shift = NewVerb(Decl{Name: "meta.shift"},
	nil,
	func(by time.Duration, a *Args) { a.Int(by.Milliseconds()) },
	func(ms *int64, r Row) error { return r.Scan(ms) })

// Shift moves the database's time, for everyone who uses that database. It is
// for tests: a node's role has no right to it.
func Shift(ctx context.Context, d Doer, by time.Duration) error {
	_, err := shift.DoAt(ctx, d, Place{}, by)
	return err
}
