package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/store"
)

// call is one request while its handler serves it.
type call struct {
	api    *API
	w      http.ResponseWriter
	r      *http.Request
	route  *route
	values map[string]string
	body   []byte
	yaml   bool
	identity
	status int
	share  *room.Share   // the memory that the request may use
	budget *store.Budget // of the page, if the response is one
	grown  bool          // the page is larger than a small one
	wants  int           // size of the share to wait for

	// flight is the request under its idempotency key, nil without one. done reports that the
	// handler has written the response itself.
	flight   *idempotency.Flight
	handlers map[[4]string]string       // handlers of operations, by lifecycle, step, requester and status
	repoints bool                       // its key points to an operation that was released
	found    *named                     // the lifecycle, once it was read
	steps    map[string]map[string]bool // steps of the lifecycles that a definition names
	storeAs  any                        // stored instead of the full response, if set
	etag     string                     // of the response, "" for none
	taken    []quota.Taken              // of the quotas of the workspace
	done     bool
}

// ctx returns the request's context, in the workspace of the key.
func (c *call) ctx() context.Context { return c.r.Context() }

func actorOf(key string) string {
	if key == "" {
		return "dev"
	}
	return "key:" + key
}

// mayActAs refuses a requester that the key may not act for.
func (c *call) mayActAs(requester string) error {
	if requester == "" {
		return fault.New(fault.Validation, "requester is required: set it to the requester to act for").With("pointer", "/requester")
	}
	if c.key.Speaks(requester) {
		return nil
	}
	return fault.New(fault.Forbidden, "the %s may not act for requester %q: use one that lists this requester", c.credential(), requester)
}

// serve serves a request under /api/v1.
func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	c := &call{api: a, w: w, r: r, share: a.room.Share(w)}
	defer c.share.End()
	written := false
	defer func() { c.endQuotas(written) }() // also after a panic
	answer, err := c.answer()
	written = err == nil
	c.endQuotas(written) // before the client learns of it
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

// answer authenticates the request, checks its limits, and runs its route.
func (c *call) answer() (any, error) {
	// Authentication comes first: an unauthenticated caller must not learn which routes exist.
	watched := watchOf(c.ctx())
	if err := c.authenticate(); err != nil {
		if c.hasEnded(watched, err) {
			err = nil
		}
		return nil, err
	}
	watched.InWorkspace(c.key.Workspace)
	if err := c.limit(); err != nil {
		return nil, err
	}
	if watched.notFound != nil {
		return nil, watched.notFound
	}
	c.route, c.values, c.share.Workspace = watched.target, watched.values, c.key.Workspace
	if !c.route.May(c.key.Role) {
		return nil, fault.New(fault.Forbidden, "the role %q of the %s does not permit this request: use one with another role", c.key.Role, c.credential())
	}
	if err := c.mayRead(c.stream()); err != nil {
		return nil, err
	}
	if err := c.checkRestrictions(); err != nil {
		return nil, err
	}
	if err := c.readBody(); err != nil {
		return nil, err
	}
	c.status = c.route.Status
	var err error
	if c.flight, err = c.newFlight(); err != nil {
		return nil, err
	}
	if err := c.admit(); err != nil {
		return nil, err
	}
	switch {
	case c.flight != nil:
		return c.serveIdempotent()
	case c.route.Stream && c.wantsStream():
		free, err := c.api.quotas.Connect(c.key.Workspace)
		if err != nil {
			return nil, c.overQuota(err)
		}
		defer free()
		c.r = c.r.WithContext(store.Gated(c.ctx(), gate{c.share, c.api.reading})) // each of its reads waits for room
	case c.route.Idempotency == table.Never:
		return c.read()
	}
	return c.route.Serve(c)
}

// read serves a request that takes no idempotency key. If the response does not fit into the room, it waits
// for room and reads again.
func (c *call) read() (any, error) {
	r := c.r
	for {
		read := store.NewBudget(0)
		c.r = r.WithContext(store.Whole(read.In(r.Context())))
		answer, err := c.route.Serve(c)
		c.r = r
		if c.done { // the response is written
			return answer, err
		}
		if used := read.Used(); err == nil && used > room.SmallBytes {
			err = c.needs(room.AnswerWeight * used)
		}
		if !errors.Is(err, errNoRoom) {
			return answer, err
		}
		answer = nil // frees the memory before waiting
		if err := c.share.Wait(c.ctx(), c.wants); err != nil {
			return nil, err
		}
	}
}

// needs grows the share of the request to n bytes, or returns errNoRoom.
func (c *call) needs(n int) error {
	if c.share.Try(n) {
		return nil
	}
	c.wants = n
	return errNoRoom
}

// errNoRoom ends a read whose response does not fit. It never leaves [call.read].
var errNoRoom = errors.New("no room for the response")

// doer returns the transaction of the request, its one command, or the engine.
func (c *call) doer() store.Doer {
	if d, ok := c.ctx().Value(doerKey{}).(store.Doer); ok {
		return d
	}
	return c.api.engine
}

type doerKey struct{}
