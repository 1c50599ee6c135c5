package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
)

// call is one request in the hands of its handler.
type call struct {
	api    *API
	w      http.ResponseWriter
	r      *http.Request
	route  *route
	values map[string]string
	body   []byte
	yaml   bool
	key    keys.Key // who asks
	status int
	share  *room.Share
	budget *store.Budget // of the page, if it is one
	grown  bool          // the page has more than a small one
	wants  int           // how large the share must be, where it could not be had at once

	// flight is the request under its key, nil without one; done says that the answer
	// has been written by the handler itself.
	flight   *idempotency.Flight
	handlers map[[4]string]string       // of operations, by what they are of
	repoints bool                       // its key points to an operation that was put back
	found    *named                     // the lifecycle, once it was looked up
	steps    map[string]map[string]bool // of lifecycles that a definition names
	keep     any                        // what is kept of the answer, if that is not all of it
	etag     string                     // of what is answered, "" for none
	done     bool
}

// ctx is the request's, in the workspace of the key.
func (c *call) ctx() context.Context { return c.r.Context() }

// actor is who asks, for the history.
func (c *call) actor() string { return actorOf(c.key.ID) }

func actorOf(key string) string {
	if key == "" {
		return "dev"
	}
	return "key:" + key
}

// mayActAs refuses a requester that the key may not speak for.
func (c *call) mayActAs(requester string) error {
	if requester == "" {
		return fault.New(fault.Validation, "requester says on whose behalf").With("pointer", "/requester")
	}
	if c.key.Speaks(requester) {
		return nil
	}
	return fault.New(fault.Forbidden, "the API key may not speak for the requester %q", requester)
}

// serve answers a request under /api/v1.
func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	c := &call{api: a, w: w, r: r, share: a.room.Share(w)}
	defer c.share.End()
	answer, err := c.answer()
	if err != nil {
		watched := watchOf(r.Context())
		watched.Refused(err)
		a.refuse(w, watched.Safe(c.r), err)
		return
	}
	if c.done {
		return
	}
	if c.etag != "" {
		w.Header().Set("ETag", c.etag)
	}
	if answer == nil {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if items, next, ok := pageIn(answer); ok {
		c.writePage(items, next)
		return
	}
	writeJSON(c.share.Writer(w), c.r, c.status, "application/json", answer)
}

// answer finds out who asks for what, and does it.
func (c *call) answer() (any, error) {
	// Who asks comes first: a stranger learns nothing, not even what there is.
	if err := c.authenticate(); err != nil {
		return nil, err
	}
	watched := watchOf(c.ctx())
	watched.InWorkspace(c.key.Workspace)
	if watched.nothing != nil {
		return nil, watched.nothing
	}
	c.route, c.values, c.share.Workspace = watched.target, watched.values, c.key.Workspace
	if !c.route.May(c.key.Role) {
		return nil, fault.New(fault.Forbidden, "a key with the role %q may not do this", c.key.Role)
	}
	if err := c.limit(); err != nil {
		return nil, err
	}
	if err := c.readBody(); err != nil {
		return nil, err
	}
	c.status = c.route.Status
	var err error
	if c.flight, err = c.keyed(); err != nil {
		return nil, err
	}
	switch {
	case c.flight != nil:
		return c.serveIdempotent()
	case c.route.Stream && c.wantsStream():
		c.r = c.r.WithContext(store.Gated(c.ctx(), gate{c.share, c.api.reading}))
	case c.route.Idempotency == table.Never:
		return c.read()
	}
	return c.route.Serve(c)
}

// read answers a request that changes nothing. Where there is no room for the answer, it waits, and reads again.
func (c *call) read() (any, error) {
	r := c.r
	for {
		read := store.NewBudget(0)
		c.r = r.WithContext(store.Whole(read.In(r.Context())))
		answer, err := c.route.Serve(c)
		c.r = r
		if c.done { // it is written
			return answer, err
		}
		if used := read.Used(); err == nil && used > room.SmallBytes {
			err = c.needs(room.AnswerWeight * used)
		}
		if !errors.Is(err, errNoRoom) {
			return answer, err
		}
		answer = nil // before it waits
		if err := c.share.Wait(c.ctx(), c.wants); err != nil {
			return nil, err
		}
	}
}

// needs makes the share of the request one of n, or says that there is no room for it.
func (c *call) needs(n int) error {
	if c.share.Try(n) {
		return nil
	}
	c.wants = n
	return errNoRoom
}

// errNoRoom ends a read whose answer has no room. It never leaves [call.read].
var errNoRoom = errors.New("there is no room for the answer")

// doer is what a verb runs on.
func (c *call) doer() store.Doer {
	if tx, ok := c.ctx().Value(txKey{}).(*store.Tx); ok {
		return tx
	}
	return c.api.engine
}

type txKey struct{}
