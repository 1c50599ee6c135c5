package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

// page is the requested part of a list. It ends after limit elements, or when its budget is spent.
type page struct {
	limit  int
	after  string // the content of the cursor
	budget *store.Budget
	begun  time.Time
}

// spent reports whether a search ends its page, although it is not full.
func (p page) spent() bool { return p.budget.Spent() || clock.Since(p.begun) > searchTime }

// paged are the query parameters of a list.
type paged struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor"`
}

// page parses limit and cursor.
func (c *call) page(from paged) (page, error) {
	p := page{limit: 100, budget: store.NewBudget(room.SmallBytes), begun: clock.Now()}
	c.budget, c.grown = p.budget, false
	if limit := from.Limit; limit != nil {
		if *limit < 1 || *limit > 1000 {
			return p, fault.New(fault.Validation, "limit must be between 1 and 1000, got %d", *limit)
		}
		p.limit = *limit
	}
	if from.Cursor == "" {
		return p, nil
	}
	after, generation, ok := uncursor(c.route.ID, from.Cursor)
	if ok && generation != c.api.engine.Generation() {
		return p, fault.New(fault.CursorExpired, "the cursor is from before the database was restored from a backup, and may be of something that was lost: start again without a cursor")
	}
	if !ok || !utf8.ValidString(after) || strings.ContainsRune(after, 0) {
		return p, noCursor()
	}
	p.after = after
	return p, nil
}

func noCursor() error {
	return fault.New(fault.Validation, "invalid cursor: use the value of next from an earlier page of the same list")
}

// versionOf parses the cursor of a list that is ordered by version. The checksum of a cursor is not
// a secret, so the content may be anything.
func versionOf(after string) (int64, error) {
	n, err := strconv.ParseInt(after, 10, 64)
	if err != nil || n < 0 {
		return 0, noCursor()
	}
	return n, nil
}

// numberOf parses the cursor of a list that is numbered from 1, 0 for none.
func numberOf(after string) (int64, error) {
	if after == "" {
		return 0, nil
	}
	return versionOf(after)
}

// listed returns a page of a list. next is the content of the following page's cursor, "" at the
// end.
func listed[T any](c *call, items []T, next string) wire.List[T] {
	l := wire.List[T]{Items: items}
	if l.Items == nil {
		l.Items = []T{}
	}
	if next != "" {
		text := c.cursor(next)
		l.Next = &text
	}
	return l
}

// readPage reads a page in chunks, so that it reads little from the database that the page has no
// room for. key returns the content of the cursor that continues after an element, "" if none can follow. next is that of the
// last element, "" at the end of the list.
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

// grow raises the budget of a page that is not small, to an estimate from the elements that were read. If the memory for large
// messages (package room) does not suffice, it returns errNoRoom: [call.read] waits, and reads again. If the remaining elements
// turn out larger, the page ends early.
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

// list returns a page of a list, with its elements converted by show.
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

// maxSearches is how many statements a page of a search for events runs, if it does not fill up before. Events of the feed are read one
// by one: 1,000 of them take about 15 ms among a million. Rows of objects are wider: 10,000 of them take about 50 ms on SQLite.
const (
	maxSearches     = 20
	maxFeedSearches = 4
	maxRowSearches  = 10
)

// searchTime is how long a page of a search may take before it runs no further statement: these numbers of rows take longer on a
// busy database.
var searchTime = 50 * time.Millisecond

// search is [list] for a search in the database ([store.Found]): a page may be short, or even empty, and still have a next.
func search[T, W any](c *call, from paged, read func(ctx context.Context, after string, limit int) ([]store.Found[T], error), show func(T) W, key func(T) string) (wire.List[W], error) {
	p, err := c.page(from)
	if err != nil {
		return wire.List[W]{}, err
	}
	var all []W
	ctx := p.budget.In(c.ctx())
	for range maxRowSearches {
		n := p.budget.Rows(p.limit - len(all))
		found, err := read(ctx, p.after, n)
		if err != nil {
			return wire.List[W]{}, err
		}
		for _, f := range found {
			if f.Wanted {
				all = append(all, show(f.Row))
			}
		}
		if p.after = ""; store.HasMore(found, n) || len(found) > 0 && store.Cut(ctx) {
			p.after = key(found[len(found)-1].Row)
		}
		if err := c.grow(p, len(all), p.after == ""); err != nil {
			return wire.List[W]{}, err
		}
		if p.after == "" || len(all) >= p.limit || p.spent() {
			break
		}
	}
	return listed(c, all, p.after), nil
}

// searches describes a list that is searched.
const searches = "With a filter, a page may have few items, or none, and still a next one."

// ranged are the query parameters for times.
type ranged struct {
	Since        string `query:"since" doc:"Only those created from this time on (RFC 3339)."`
	Until        string `query:"until" doc:"Only those created before this time (RFC 3339)."`
	UpdatedSince string `query:"updatedSince" doc:"Only those changed last from this time on (RFC 3339)."`
	UpdatedUntil string `query:"updatedUntil" doc:"Only those changed last before this time (RFC 3339)."`
}

// times parses the times.
func (r ranged) times() (t store.Times, err error) {
	for _, x := range []struct {
		name, text string
		to         *time.Time
	}{{"since", r.Since, &t.Since}, {"until", r.Until, &t.Until}, {"updatedSince", r.UpdatedSince, &t.UpdatedSince}, {"updatedUntil", r.UpdatedUntil, &t.UpdatedUntil}} {
		if *x.to, err = moment(x.name, x.text); err != nil {
			return t, err
		}
	}
	for _, x := range [][2]time.Time{{t.Since, t.Until}, {t.UpdatedSince, t.UpdatedUntil}} {
		if !x[0].IsZero() && !x[1].IsZero() && !x[0].Before(x[1]) {
			return t, fault.New(fault.Validation, "since must be before until, got %s and %s", x[0].UTC().Format(time.RFC3339), x[1].UTC().Format(time.RFC3339))
		}
	}
	return t, nil
}

// A cursor is the position where a list continues. It is opaque and carries a checksum, so that a
// damaged cursor, or one of another list, is refused instead of misread. Anybody can compute the checksum: the API key
// decides what may be read. After a restore of the database, it also carries the generation ([store.Fence]).

const sumBytes = 6

func cursorSum(list, after string) []byte {
	sum := sha256.Sum256([]byte("holdfast cursor\x00" + list + "\x00" + after))
	return sum[:sumBytes]
}

// cursor returns the cursor of a position in the list of the route.
func (c *call) cursor(after string) string {
	if generation := c.api.engine.Generation(); generation > 0 {
		after += "\x00" + strconv.FormatInt(generation, 36)
	}
	return cursorOf(c.route.ID, after)
}

func cursorOf(list, content string) string {
	return base64.RawURLEncoding.EncodeToString(append(cursorSum(list, content), content...))
}

func uncursor(list, cursor string) (after string, generation int64, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) <= sumBytes {
		return "", 0, false
	}
	after, since, restored := strings.Cut(string(raw[sumBytes:]), "\x00")
	if restored {
		if generation, err = strconv.ParseInt(since, 36, 64); err != nil {
			return "", 0, false
		}
	}
	return after, generation, string(cursorSum(list, string(raw[sumBytes:]))) == string(raw[:sumBytes])
}
