package httpapi

import (
	"context"
	"math"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/oidc"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
)

// workspaceHeader selects the workspace on a server without keys, and of a token that has rights in several.
const workspaceHeader = "X-Holdfast-Workspace"

// authenticate determines the key and workspace of the request.
func (c *call) authenticate() error {
	id, err := c.api.identify(c.r)
	if err != nil {
		return err
	}
	c.identity = id
	key := id.key
	if space := c.r.Header.Get(workspaceHeader); space != "" && space != key.Workspace {
		return fault.New(fault.Forbidden, "the %s does not belong to the workspace in the header %s: correct or omit the header", id.credential(), workspaceHeader)
	}
	ctx := refusals.WithCaller(c.r.Context(), refusals.Caller{Actor: c.actor(), Request: requestID(c.r.Context())})
	c.r = c.r.WithContext(holdfast.InWorkspace(ctx, key.Workspace))
	return nil
}

// identity is the caller of a request: the holder of an API key, of a session or of a token, or anybody on a server without keys.
type identity struct {
	key     keys.Key      // its rights; a token has those of a key without an id
	session *keys.Session // nil if the caller has sent its key
	bearer  *oidc.Token   // its token; nil for the callers with a key
}

// actor names the caller in histories.
func (id identity) actor() string {
	if id.bearer != nil {
		return id.bearer.Actor()
	}
	return actorOf(id.key.ID)
}

// owner identifies the caller of requests with an idempotency key. It outlasts the rotation of an API key, and a token.
func (id identity) owner() string {
	if id.bearer != nil {
		return id.bearer.Owner()
	}
	return actorOf(id.key.Origin())
}

// credential is what the caller has sent, for errors.
func (id identity) credential() string {
	if id.bearer != nil {
		return "token"
	}
	return "API key"
}

// identify returns the caller of a request. A header counts before the cookie. On a server
// without keys, every caller is an admin that may act for all requesters.
func (a *API) identify(r *http.Request) (identity, error) {
	if a.noKeys {
		space := r.Header.Get(workspaceHeader)
		if space == "" {
			space = "default"
		}
		return identity{key: keys.Key{Workspace: space, Role: keys.Admin, Requesters: []string{"*"}}}, nil
	}
	if cookie, ok := sessionCookie(r); ok && !hasKey(r) {
		key, session, err := a.ring.VerifySession(r.Context(), cookie)
		if err == nil {
			err = a.mayEnter(key, r)
		}
		return identity{key: key, session: &session}, err
	}
	text := presented(r)
	if a.tokens != nil && oidc.IsToken(text) {
		return a.tokens.identify(r, text)
	}
	key, err := a.ring.Verify(r.Context(), text)
	if err == nil {
		err = a.mayEnter(key, r)
	}
	return identity{key: key}, err
}

// recheckKey refuses a long request whose key, session or token has become invalid. An unreachable database or issuer says nothing
// about it.
func (c *call) recheckKey() error {
	if c.bearer != nil {
		if err := c.api.tokens.recheck(c.ctx(), c.bearer); err != nil {
			return err
		}
	}
	if _, err := c.api.identify(c.r); fault.CodeOf(err) == fault.Auth {
		return err
	}
	return nil
}

// hasKey reports whether the headers of a request have a key or a token, valid or not.
func hasKey(r *http.Request) bool {
	return len(r.Header.Values("Authorization"))+len(r.Header.Values("X-Api-Key")) > 0
}

// presented returns the key or token in the headers of a request. A request with several is ambiguous,
// so none of them counts.
func presented(r *http.Request) string {
	bearer, other := r.Header.Values("Authorization"), r.Header.Values("X-Api-Key")
	if len(bearer)+len(other) != 1 {
		return ""
	}
	if len(other) == 1 {
		return other[0]
	}
	scheme, key, ok := strings.Cut(bearer[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// limit enforces the rate limit of the key, and the quota of requests of its workspace.
func (c *call) limit() error {
	wait := c.api.limits.Take(c.actor(), c.key.Rate)
	if wait <= 0 {
		return c.overQuota(c.api.quotas.Request(c.key.Workspace))
	}
	seconds := int(math.Ceil(wait.Seconds()))
	return fault.New(fault.RateLimited, "the rate limit of the %s is exceeded: try again in %d s", c.credential(), seconds).With("retryAfter", seconds)
}

// through returns a context in which [call.doer] is d: a transaction, or the doer of a request that is one command.
func through(ctx context.Context, d store.Doer) context.Context {
	return context.WithValue(ctx, doerKey{}, d)
}
