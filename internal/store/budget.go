package store

import (
	"context"
	"errors"
	"reflect"
)

// PageBytes is the size limit of a page of the HTTP API. The element that exceeds it is still returned.
const PageBytes = 8 << 20

// Budget limits how many bytes reads return. A read in the budget's context ends with the row that exhausts it,
// and the adapter stops reading; the first row is always returned, so that a row of any size can be read.
//
// PostgreSQL sends every row that the statement selects, even those no longer read, so [Budget.Rows] keeps the
// statements small. A Budget is used by one goroutine at a time.
type Budget struct {
	size, left  int
	rows, bytes int // by the last read
	cut         bool
}

// NewBudget returns a budget of the given number of bytes.
func NewBudget(bytes int) *Budget { return &Budget{size: bytes, left: bytes} }

type budgetKey struct{}

// uncut is a budget that reads are charged to but that never ends them.
type uncut struct{ *Budget }

// In returns a context in which the budget limits reads.
func (b *Budget) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// Whole returns a context in which reads run to their end and are still charged to the context's budget.
func Whole(ctx context.Context) context.Context {
	if b, ok := ctx.Value(budgetKey{}).(*Budget); ok {
		return context.WithValue(ctx, budgetKey{}, uncut{b})
	}
	return ctx
}

// Cut reports whether the budget ended the last read in the context, so that there may be more rows.
func Cut(ctx context.Context) bool {
	b, ok := ctx.Value(budgetKey{}).(*Budget)
	return ok && b.cut
}

// Enough reports whether the context's budget is exhausted, for a reader that builds one element from several
// reads. The reader then stops, and the read counts as cut.
func Enough(ctx context.Context) bool {
	b, ok := ctx.Value(budgetKey{}).(*Budget)
	if !ok || !b.Spent() {
		return false
	}
	b.cut = true
	return true
}

// Spent reports whether the budget is exhausted.
func (b *Budget) Spent() bool { return b.left <= 0 }

// Used returns the bytes read since the budget was created or refilled.
func (b *Budget) Used() int { return b.size - b.left }

// More adds to the budget.
func (b *Budget) More(bytes int) { b.size, b.left = b.size+bytes, b.left+bytes }

// Spend charges the budget.
func (b *Budget) Spend(bytes int) { b.left -= bytes }

// Refill restores the full budget.
func (b *Budget) Refill() { b.left, b.cut = b.size, false }

// Gate limits the memory for read results. A read in its context is dropped if there is no room for its rows,
// and repeated when there is.
type Gate interface {
	// Pass runs read, which returns the bytes read. The rows of the previous read are no longer needed. It calls
	// drop to discard rows that have no room.
	Pass(ctx context.Context, read func() (bytes int, err error), drop func()) error
}

type gateKey struct{}

// Gated returns a context in which a read waits for room for its rows. It is for one goroutine that has
// finished with its previous rows when it reads again.
func Gated(ctx context.Context, g Gate) context.Context { return context.WithValue(ctx, gateKey{}, g) }

// firstRows is the number of rows that a read requests before their size is known.
const firstRows = 16

// Rows returns how many rows the next read requests, 1 to most: as many as fit, judging by the size of the
// previous ones.
func (b *Budget) Rows(most int) int {
	fit := firstRows
	if b.rows > 0 {
		fit = max(b.left, 0)/max(b.bytes/b.rows, 1) + 1
	}
	return min(fit, most)
}

// ErrEnough is returned by [Command.Scan] when no further row is wanted. The adapter stops reading; it is not a
// failure.
var ErrEnough = errors.New("no further rows are needed")

// meter counts the bytes of rows for a command.
type meter struct {
	budget      *Budget
	gate        Gate
	cuts        bool // the budget ends the read when it is exhausted
	rows, bytes int
	cut         bool // the budget has ended the read
}

func meterOf(ctx context.Context, lane Lane) *meter {
	if lane != Read {
		return nil
	}
	gate, _ := ctx.Value(gateKey{}).(Gate)
	switch b := ctx.Value(budgetKey{}).(type) {
	case *Budget:
		return &meter{budget: b, gate: gate, cuts: true}
	case uncut:
		return &meter{budget: b.Budget, gate: gate}
	}
	if gate != nil {
		return &meter{budget: NewBudget(0), gate: gate}
	}
	return nil
}

// scan counts the bytes that a scanner takes from a row.
func (m *meter) scan(r Row, scan func(Row) error) error {
	if err := scan(metered{r, m}); err != nil {
		return err
	}
	m.rows++
	if m.cut = m.cuts && m.bytes >= m.budget.left; m.cut {
		return ErrEnough
	}
	return nil
}

func (m *meter) reset() { m.rows, m.bytes, m.cut = 0, 0, false }

// charge charges the budget for the rows read.
func (m *meter) charge() {
	b := m.budget
	b.left -= m.bytes
	if m.cuts {
		b.rows, b.bytes, b.cut = m.rows, m.bytes, m.cut
	}
}

// metered is a [Row] that counts its bytes.
type metered struct {
	Row
	meter *meter
}

// rowBytes is the size of a row besides its texts.
const rowBytes = 64

func (r metered) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	r.meter.bytes += rowBytes
	for _, d := range dest {
		v := reflect.ValueOf(d)
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if k := v.Kind(); k == reflect.String || k == reflect.Slice {
			r.meter.bytes += v.Len()
		}
	}
	return err
}
