package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/wire"
)

// Page selects a part of a list. The zero value selects the first page.
type Page struct {
	// Limit is the maximum number of elements, up to 1000. The default is 100. A page also ends after 8 MiB, so check
	// Next to find out whether it is the last page.
	Limit int
	// Cursor is the value of Next in the previous page.
	Cursor string
}

// EntityFilter selects entities. The zero value selects all.
type EntityFilter struct {
	Status string
	TimeRange
}

// BatchFilter selects batches. Backward lists the batch that was created last first.
type BatchFilter struct {
	Status, Handler, Wallet string
	Backward                bool
	TimeRange
}

// TimeRange selects objects by when they were created (Since, Until) and changed last: from a time on, before another. The zero
// time means no limit.
type TimeRange struct{ Since, Until, UpdatedSince, UpdatedUntil time.Time }

// ItemFilter selects items of a batch.
type ItemFilter struct{ State string }

// ClaimFilter selects claims by phase: held, due or uncertain.
type ClaimFilter struct{ Phase string }

// OperationFilter selects operations by state: held, due, uncertain, contradicted or lost. The zero value selects the
// operations of entities, uncertain steps and contradictions; only "lost" selects lost hand-outs.
type OperationFilter struct{ State, Handler string }

// PositionFilter selects positions of a reaction.
type PositionFilter struct {
	Pattern string // RE2 pattern for stream names, "" for every stream
	Blocked *bool
}

// RunFilter selects runs. Step is the name of the current step, and Handler is its handler.
type RunFilter struct {
	Status, Definition, Key, Step, Handler string
	TimeRange
}

// ApprovalFilter selects approvals.
type ApprovalFilter struct{ Status, Run string }

// BulkMemberFilter selects members of a bulk by the status of the action, such as refused.
type BulkMemberFilter struct{ Status string }

// InboxFilter selects entries of the inbox by kind; several kinds are separated by commas.
type InboxFilter struct{ Kind string }

// RequestFilter selects stored requests by their operation, which is required.
type RequestFilter struct{ Operation string }

// AuditFilter selects administrative actions. The zero value selects all.
type AuditFilter struct {
	Actor, Action, Subject string
	Since, Until           time.Time // from Since on, before Until; the zero time means no limit
}

// RateFilter selects rates by how many minutes ago they were recorded; nil selects an hour.
type RateFilter struct{ Minutes *int64 }

// StreamRange selects events of a stream, and their order.
type StreamRange struct {
	// From is the first version to read. The default is the stream's first version or, with
	// Backward, its last version.
	From     *int64
	Backward bool
}

// LedgerRange selects the order of a wallet's ledger.
type LedgerRange struct{ Backward bool }

// StreamFilter selects streams by the beginning of their names.
type StreamFilter struct{ Prefix string }

// ScopeFilter selects scopes of a kind by the beginning of their ids.
type ScopeFilter struct{ Prefix string }

// EventFilter selects events of a stream, or of the feed if Stream is "".
type EventFilter struct {
	Stream             string
	Name               string // several names are separated by commas
	Correlation, Actor string
	Since, Until       time.Time // from Since on, before Until; the zero time means no limit
	Backward           bool
}

// list returns the request for a page of a list.
func list(p Page, path ...string) *request {
	r := newRequest(http.MethodGet, nil, path...)
	if p.Limit != 0 {
		r.query.Set("limit", strconv.Itoa(p.Limit))
	}
	r.set("cursor", p.Cursor)
	return r
}

// set sets a query parameter. It omits an empty string, false and nil.
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
	case time.Time:
		if !v.IsZero() {
			text = v.UTC().Format(time.RFC3339Nano)
		}
	case *int64:
		if v != nil {
			text = strconv.FormatInt(*v, 10)
		}
	default: // the generator does not support this type
		panic(fmt.Sprintf("client: query parameter %s has the unsupported type %T", name, value))
	}
	if text != "" {
		r.query.Set(name, text)
	}
	return r
}

// pages reads page after page, until the last page, the first error, or a break.
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

// ReadFeed reads the feed, which is all streams but histories, up to its current end, after a position ("" is the
// beginning). [Client.FollowFeed] continues as the feed grows.
func (c *Client) ReadFeed(ctx context.Context, after string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) {
		if p.Cursor == "" {
			p.Cursor = after
		}
		return c.ReadFeedPage(ctx, p)
	})
}
