package client

import (
	"context"
	"fmt"
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

// EntityFilter chooses entities.
type EntityFilter struct{ Status string }

// OperationFilter chooses operations and claims: held, due or uncertain ones, or
// operations that are contradicted; "" is all.
type OperationFilter struct{ State string }

// PositionFilter chooses the positions of a reaction.
type PositionFilter struct {
	Stream  string // RE2; "" is all
	Blocked *bool
}

// RunFilter chooses runs.
type RunFilter struct{ Status, Definition string }

// ApprovalFilter chooses approvals.
type ApprovalFilter struct{ Status, Run string }

// StreamRange is which events of a stream to read, and in which order.
type StreamRange struct {
	// From is the version of the first; the default is the stream's first, or, for
	// Backward, its last.
	From     *int64
	Backward bool
}

// list asks for a page of a list.
func list(p Page, path ...string) *request {
	r := newRequest(http.MethodGet, nil, path...)
	if p.Limit != 0 {
		r.query.Set("limit", strconv.Itoa(p.Limit))
	}
	r.set("cursor", p.Cursor)
	return r
}

// set sets a parameter of the query: a text, a number or a condition. One that is empty, false
// or nil is left out.
func (r *request) set(name string, value any) *request {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case bool:
		if v {
			text = "true"
		}
	case *bool:
		if v != nil {
			text = strconv.FormatBool(*v)
		}
	case *int64:
		if v != nil {
			text = strconv.FormatInt(*v, 10)
		}
	default: // a route has it that the generator does not know
		panic(fmt.Sprintf("client: the parameter %s is a %T", name, value))
	}
	if text != "" {
		r.query.Set(name, text)
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

// ReadEvents reads the feed over all streams up to where it is now, after a position
// ("" is the beginning). [Client.Follow] goes on as it grows.
func (c *Client) ReadEvents(ctx context.Context, after string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) {
		if p.Cursor == "" {
			p.Cursor = after
		}
		return c.ReadEventsPage(ctx, p)
	})
}
