package httpapi

import (
	"context"
	"math"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
)

// workspaceHeader selects the workspace on a server without keys.
const workspaceHeader = "X-Holdfast-Workspace"

// authenticate determines the key and workspace of the request.
func (c *call) authenticate() error {
	key, session, err := c.api.identify(c.r)
	if err != nil {
		return err
	}
	if space := c.r.Header.Get(workspaceHeader); space != "" && space != key.Workspace {
		return fault.New(fault.Forbidden, "the API key does not belong to the workspace in the header %s: correct or omit the header", workspaceHeader)
	}
	c.key, c.session = key, session
	ctx := refusals.WithCaller(c.r.Context(), refusals.Caller{Actor: c.actor(), Request: requestID(c.r.Context())})
	c.r = c.r.WithContext(holdfast.InWorkspace(ctx, key.Workspace))
	return nil
}

// identify returns the key of a request, and the session if the request has no key in its headers. On a server
// without keys, every caller is an admin that may act for all requesters.
func (a *API) identify(r *http.Request) (keys.Key, *keys.Session, error) {
	if a.noKeys {
		space := r.Header.Get(workspaceHeader)
		if space == "" {
			space = "default"
		}
		return keys.Key{Workspace: space, Role: keys.Admin, Requesters: []string{"*"}}, nil, nil
	}
	if cookie, ok := sessionCookie(r); ok && !hasKey(r) {
		key, session, err := a.ring.VerifySession(r.Context(), cookie)
		return key, &session, err
	}
	key, err := a.ring.Verify(r.Context(), presented(r))
	return key, nil, err
}

// recheckKey refuses a long request whose key or session has become invalid. An unreachable database says nothing
// about the key.
func (c *call) recheckKey() error {
	if _, _, err := c.api.identify(c.r); fault.CodeOf(err) == fault.Auth {
		return err
	}
	return nil
}

// hasKey reports whether the headers of a request have a key, valid or not.
func hasKey(r *http.Request) bool {
	return len(r.Header.Values("Authorization"))+len(r.Header.Values("X-Api-Key")) > 0
}

// presented returns the key in the headers of a request. A request with several keys is ambiguous,
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

// limit enforces the rate limit of the key.
func (c *call) limit() error {
	wait := c.api.limits.Take(c.key)
	if wait <= 0 {
		return nil
	}
	seconds := int(math.Ceil(wait.Seconds()))
	return fault.New(fault.RateLimited, "the API key's rate limit is exceeded: try again in %d s", seconds).With("retryAfter", seconds)
}

// through returns a context in which [call.doer] is d: a transaction, or the doer of a request that is one command.
func through(ctx context.Context, d store.Doer) context.Context {
	return context.WithValue(ctx, doerKey{}, d)
}
