package store

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

var shift = NewVerb(Decl{Name: "meta.shift_clock"},
	nil,
	func(by time.Duration, a *Args) { a.Int("by", by.Milliseconds()) },
	func(moved *bool, r Row) error {
		var ms int64
		*moved = r.Applied()
		return r.Scan(&ms)
	})

// Shift moves the database's clock for every user of that database. It exists for tests; the runtime role has
// no privilege for it.
func Shift(ctx context.Context, d Doer, by time.Duration) error {
	moved, err := shift.DoAt(ctx, d, Partition{}, by)
	if err == nil && !moved {
		err = fault.New(fault.Forbidden, "the clock of this database cannot be moved: use a database created by holdfasttest")
	}
	return err
}

// OrZero returns the zero time for the Unix epoch, which stands for never in the database.
func OrZero(t time.Time) time.Time {
	if t.Unix() == 0 {
		return time.Time{}
	}
	return t
}

// Moment returns nil for the Unix epoch, which stands for never.
func Moment(t time.Time) *time.Time {
	if t.Unix() == 0 {
		return nil
	}
	return &t
}
