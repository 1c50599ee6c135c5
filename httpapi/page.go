package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

// page is the part of a list that is asked for. It ends after limit elements, or when its budget is spent.
type page struct {
	limit  int
	after  string // what the cursor says
	budget *store.Budget
}

// paged is what the caller of a list says of the page that it wants.
type paged struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor"`
}

// page reads limit and cursor.
func (c *call) page(from paged) (page, error) {
	p := page{limit: 100, budget: store.NewBudget(room.SmallBytes)}
	c.budget, c.grown = p.budget, false
	if limit := from.Limit; limit != nil {
		if *limit < 1 || *limit > 1000 {
			return p, fault.New(fault.Validation, "limit is 1 to 1000")
		}
		p.limit = *limit
	}
	if from.Cursor == "" {
		return p, nil
	}
	after, ok := uncursor(c.route.ID, from.Cursor)
	if !ok || !utf8.ValidString(after) || strings.ContainsRune(after, 0) {
		return p, noCursor()
	}
	p.after = after
	return p, nil
}

func noCursor() error {
	return fault.New(fault.Validation, "the cursor is not one that was given out here")
}

// versionOf reads the cursor of a list that goes by versions. Its sum is no secret, so
// that it may say anything.
func versionOf(after string) (int64, error) {
	n, err := strconv.ParseInt(after, 10, 64)
	if err != nil || n < 0 {
		return 0, noCursor()
	}
	return n, nil
}

// numberOf reads the cursor of a list that goes by numbers from 1 on, 0 for none.
func numberOf(after string) (int64, error) {
	if after == "" {
		return 0, nil
	}
	return versionOf(after)
}

// listed makes a page of a list: next is what the cursor of the following one says,
// "" at the end.
func listed[T any](c *call, items []T, next string) wire.List[T] {
	l := wire.List[T]{Items: items}
	if l.Items == nil {
		l.Items = []T{}
	}
	if next != "" {
		text := cursorOf(c.route.ID, next)
		l.Next = &text
	}
	return l
}

// readPage reads a page, some elements at a time, so that the database is not asked for much that the page has no
// room for. key is the cursor behind an element; next is that of the page's last, "" at the end of the list.
func readPage[T any](c *call, p page, read func(ctx context.Context, after string, limit int) ([]T, error), key func(T) string) (all []T, next string, err error) {
	ctx := p.budget.In(c.ctx())
	for {
		n := p.budget.Rows(p.limit - len(all))
		some, err := read(ctx, p.after, n)
		if err != nil {
			return nil, "", err
		}
		all = append(all, some...)
		last := len(some) == 0 || len(some) < n && !store.Cut(ctx)
		if err := c.grow(p, len(all), last); err != nil {
			return nil, "", err
		}
		if last {
			return all, "", nil
		}
		p.after = key(some[len(some)-1])
		if p.after == "" || len(all) >= p.limit || p.budget.Spent() {
			return all, p.after, nil
		}
	}
}

// grow gives a page that is not small the bytes that its elements may have, by the size of those that were read, if there is room
// for them. Where they turn out larger, the page ends early.
func (c *call) grow(p page, elements int, last bool) error {
	used := p.budget.Used()
	if used < room.SmallBytes || c.grown {
		return nil
	}
	bytes := used
	if !last {
		bytes = min(used+2*used/max(elements, 1)*(p.limit-elements), store.PageBytes)
	}
	if err := c.needs(bytes + min(bytes, room.PageMargin)); err != nil {
		return err
	}
	p.budget.More(max(bytes-room.SmallBytes, 0))
	c.grown = true
	return nil
}

// list answers with a page of a list, whose elements are shown as the wire has them.
func list[T, W any](c *call, from paged, read func(ctx context.Context, after string, limit int) ([]T, error), show func(T) W, key func(T) string) (wire.List[W], error) {
	p, err := c.page(from)
	if err != nil {
		return wire.List[W]{}, err
	}
	found, next, err := readPage(c, p, read, key)
	all := make([]W, len(found))
	for i, x := range found {
		all[i] = show(x)
	}
	return listed(c, all, next), err
}

// A cursor says where a list goes on. It is opaque, and carries a sum, so that one
// that was made up, cut off or meant for another list is refused rather than read as
// something else. It is no secret: what may be read is decided by the key.

const sumBytes = 6

func cursorSum(list, after string) []byte {
	sum := sha256.Sum256([]byte("holdfast cursor\x00" + list + "\x00" + after))
	return sum[:sumBytes]
}

func cursorOf(list, after string) string {
	return base64.RawURLEncoding.EncodeToString(append(cursorSum(list, after), after...))
}

func uncursor(list, cursor string) (after string, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) <= sumBytes {
		return "", false
	}
	after = string(raw[sumBytes:])
	return after, !strings.ContainsRune(after, 0) && string(cursorSum(list, after)) == string(raw[:sumBytes])
}
