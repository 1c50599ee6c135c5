package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/wire"
)

// Page is a part of a list. The zero value is its beginning.
type Page struct {
	// Limit is how many there are at the most, up to 1000; the default is 100. A page
	// also ends when it has 8 MiB: Next, and not its length, says whether it is the last.
	Limit int
	// Cursor is where to go on: Next of the page before.
	Cursor string
}

// list asks for a list; more adds what the list is chosen by.
func list(p Page, path ...string) *request {
	r := newRequest(http.MethodGet, nil, path...)
	if p.Limit != 0 {
		r.query.Set("limit", strconv.Itoa(p.Limit))
	}
	r.set("cursor", p.Cursor)
	return r
}

// set sets a parameter of the query, unless it is empty.
func (r *request) set(name, value string) *request {
	if value != "" {
		r.query.Set(name, value)
	}
	return r
}

// pages reads page after page, until the last, the first error, or a break.
func pages[T any](read func(Page) (wire.List[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var p Page
		for {
			l, err := read(p)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, x := range l.Items {
				if !yield(x, nil) {
					return
				}
			}
			if l.Next == nil || *l.Next == p.Cursor {
				return
			}
			p.Cursor = *l.Next
		}
	}
}

// listed is do for a list.
func listed[T any](ctx context.Context, c *Client, r *request, o []Option) (wire.List[T], error) {
	return do[wire.List[T]](ctx, c, r, o)
}
