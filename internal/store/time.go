package store

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

var shift = NewVerb(Decl{Name: "meta.shift"},
	nil,
	func(by time.Duration, a *Args) { a.Int("by", by.Milliseconds()) },
	func(moved *bool, r Row) error {
		var ms int64
		*moved = r.Applied()
		return r.Scan(&ms)
	})

// Shift moves the database's time, for everyone who uses that database. It is
// for tests: a node's role has no right to it.
func Shift(ctx context.Context, d Doer, by time.Duration) error {
	moved, err := shift.DoAt(ctx, d, Partition{}, by)
	if err == nil && !moved {
		err = fault.New(fault.Forbidden, "the time of this database cannot be moved: use one that holdfasttest made")
	}
	return err
}

// Moment returns nil for the epoch, which stands for never.
func Moment(t time.Time) *time.Time {
	if t.Unix() == 0 {
		return nil
	}
	return &t
}
