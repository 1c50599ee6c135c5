package store

import (
	"context"
	"errors"
	"reflect"
)

// PageBytes is how many bytes a page of the HTTP API has, and one element more at the most.
const PageBytes = 8 << 20

// Budget bounds how many bytes reads return. A read in the budget's context ends with the row that spends it, and
// the adapter reads no further; the first row is always returned, so that a row of any size can be read.
//
// PostgreSQL sends every row that the statement selects, also those that are not read any more: [Budget.Rows] keeps
// the statements small. A Budget is used by one goroutine at a time.
type Budget struct {
	size, left  int
	rows, bytes int // of the last read
	cut         bool
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int) *Budget { return &Budget{size: bytes, left: bytes} }

type budgetKey struct{}

// whole is a budget that reads count against, and never end by.
type whole struct{ *Budget }

// In returns a context in which reads are bound by the budget.
func (b *Budget) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// Whole returns a context in which reads are read to their end, and count against the context's budget.
func Whole(ctx context.Context) context.Context {
	if b, ok := ctx.Value(budgetKey{}).(*Budget); ok {
		return context.WithValue(ctx, budgetKey{}, whole{b})
	}
	return ctx
}

// Cut says whether the last read in the context ended by its budget: there may be more rows.
func Cut(ctx context.Context) bool {
	b, ok := ctx.Value(budgetKey{}).(*Budget)
	return ok && b.cut
}

// Enough says whether nothing is left of the context's budget, for a reader that makes one element of several
// reads: it then goes no further, and counts as cut.
func Enough(ctx context.Context) bool {
	b, ok := ctx.Value(budgetKey{}).(*Budget)
	if !ok || !b.Spent() {
		return false
	}
	b.cut = true
	return true
}

// Spent says whether nothing is left.
func (b *Budget) Spent() bool { return b.left <= 0 }

// Used returns how many bytes were read since the budget was made, or made whole again.
func (b *Budget) Used() int { return b.size - b.left }

// More adds to the budget.
func (b *Budget) More(bytes int) { b.size, b.left = b.size+bytes, b.left+bytes }

// Spend takes from what is left.
func (b *Budget) Spend(bytes int) { b.left -= bytes }

// Refill makes the budget whole again.
func (b *Budget) Refill() { b.left, b.cut = b.size, false }

// Gate decides whether there is room for what was read. Reads in its context are dropped where there is none, and read again when there is.
type Gate interface {
	// Pass reads, and says how that went. What was read before is not needed any more. Rows that there is no room for are dropped.
	Pass(ctx context.Context, read func() (bytes int, err error), drop func()) error
}

type gateKey struct{}

// Gated returns a context in which a read waits for room for its rows. It is for one goroutine that is done with what it has read
// when it reads again.
func Gated(ctx context.Context, g Gate) context.Context { return context.WithValue(ctx, gateKey{}, g) }

// firstRows is how many rows a read asks for while nothing is known of their size.
const firstRows = 16

// Rows returns how many rows the next read asks for, 1 to most: as many as fit, by the size of those before.
func (b *Budget) Rows(most int) int {
	fit := firstRows
	if b.rows > 0 {
		fit = max(b.left, 0)/max(b.bytes/b.rows, 1) + 1
	}
	return min(fit, most)
}

// ErrEnough is returned by [Command.Scan] when the row that was scanned is the last that is wanted. An adapter
// reads no further, and it is no failure.
var ErrEnough = errors.New("no further row is wanted")

// meter counts the bytes of rows for a command.
type meter struct {
	budget      *Budget
	gate        Gate
	cuts        bool
	rows, bytes int
	cut         bool
}

func meterOf(ctx context.Context, lane Lane) *meter {
	if lane != Read {
		return nil
	}
	gate, _ := ctx.Value(gateKey{}).(Gate)
	switch b := ctx.Value(budgetKey{}).(type) {
	case *Budget:
		return &meter{budget: b, gate: gate, cuts: true}
	case whole:
		return &meter{budget: b.Budget, gate: gate}
	}
	if gate != nil {
		return &meter{budget: NewBudget(0), gate: gate}
	}
	return nil
}

// scan counts what a scanner takes from a row.
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

// charge takes what was read from the budget.
func (m *meter) charge() {
	b := m.budget
	b.left -= m.bytes
	if m.cuts {
		b.rows, b.bytes, b.cut = m.rows, m.bytes, m.cut
	}
}

// metered is a [Row] whose bytes are counted.
type metered struct {
	Row
	meter *meter
}

// rowBytes is what a row takes besides its texts.
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
