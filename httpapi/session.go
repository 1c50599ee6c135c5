package httpapi

import (
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

// A session lets a browser use an API key that it does not store: the cookie has a secret of its own, which scripts
// cannot read and browsers send only from pages of the same site. None of these routes takes an idempotency key. A
// repeated login is another session, because the secret of the first is not stored; a repeated logout changes nothing.
func (a *API) sessionRoutes() {
	add(a, route{Method: http.MethodPost, Path: "session", ID: "createSession", Tag: "keys", Summary: "Start a browser session with the caller's API key. Its cookie is set.", Roles: readers, Status: http.StatusCreated,
		More: "The key must be in a header. The session ends after 12 hours, or with the key. A key has at most 100 sessions: one more ends the oldest."}, createSession)
	add(a, route{Method: http.MethodGet, Path: "session", ID: "getSession", Tag: "keys", Summary: "Show the caller: its workspace, its role and its API key.", Roles: readers}, getSession)
	add(a, route{Method: http.MethodDelete, Path: "session", ID: "deleteSession", Tag: "keys", Summary: "End the session of the cookie. The cookie is cleared.", Roles: readers, Status: http.StatusNoContent,
		More: "A session that has ended already is not an error."}, deleteSession)
}

// isSecure reports whether the browser uses HTTPS, to this server or to a proxy before it.
func isSecure(r *http.Request) bool {
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https")
}

// newCookie returns a session cookie. Over HTTPS its name has a prefix that makes browsers refuse it from plain HTTP
// and from other hosts.
func newCookie(r *http.Request, text string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: "holdfast", Value: text, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if isSecure(r) {
		c.Name, c.Secure = "__Host-holdfast", true
	}
	return c
}

// sessionCookie returns the session in the cookie of a request, and whether there is a cookie. A request with several
// sessions is ambiguous, so none of them counts.
func sessionCookie(r *http.Request) (text string, ok bool) {
	all := r.CookiesNamed(newCookie(r, "", 0).Name)
	if len(all) == 1 {
		text = all[0].Value
	}
	return text, len(all) > 0
}

func createSession(c *call, _ *struct{}) (wire.Session, error) {
	switch {
	case c.api.noKeys:
		return wire.Session{}, fault.New(fault.Conflict, "this server runs without API keys, so there are no sessions: send requests without signing in")
	case c.bearer != nil:
		return wire.Session{}, fault.New(fault.Forbidden, "a token cannot start a session, because only an API key can: send the token with every request, or sign in with an API key")
	case c.session != nil:
		return wire.Session{}, fault.New(fault.Forbidden, "a session cannot start another session: send the API key in the Authorization header")
	}
	s, text, err := keys.CreateSession(c.ctx(), c.doer(), c.key, c.actor())
	if err != nil {
		return wire.Session{}, err
	}
	c.session = &s
	http.SetCookie(c.w, newCookie(c.r, text, int(keys.SessionLifetime.Seconds())))
	return getSession(c, nil)
}

func getSession(c *call, _ *struct{}) (wire.Session, error) {
	now, err := c.api.engine.Status(c.ctx())
	if err != nil {
		return wire.Session{}, err
	}
	w := wire.Session{Workspace: c.key.Workspace, Role: string(c.key.Role), Requesters: append([]string{}, c.key.Requesters...),
		Actor: c.actor(), Login: !c.api.noKeys, Version: c.api.version, Now: shapes.At(now.Now)}
	if c.key.ID != "" {
		w.Key = &wire.SessionKey{ID: c.key.ID, Name: c.key.Name}
	}
	ends := c.key.ExpiresAt
	if c.bearer != nil {
		ends = &c.bearer.Expires
	}
	if c.session != nil && (ends == nil || c.session.ExpiresAt.Before(*ends)) {
		ends = &c.session.ExpiresAt
	}
	if ends != nil {
		w.ExpiresAt = shapes.At(*ends)
	}
	return w, nil
}

// deleteSession ends the session of the cookie, also if the caller has sent a key too.
func deleteSession(c *call, _ *struct{}) (*struct{}, error) {
	text, ok := sessionCookie(c.r)
	if ok && !c.api.noKeys {
		key, session, err := c.api.ring.VerifySession(c.ctx(), text)
		if err == nil {
			err = keys.DeleteSession(store.InWorkspace(c.ctx(), key.Workspace), c.doer(), session, actorOf(key.ID))
			c.api.ring.Forget(session)
		}
		if err != nil && fault.CodeOf(err) != fault.Auth {
			return nil, err
		}
	}
	http.SetCookie(c.w, newCookie(c.r, "", -1))
	return nil, nil
}

// hasEnded reports whether the caller wants to end a session that has ended already, and clears its cookie.
func (c *call) hasEnded(w *watched, err error) bool {
	ended := fault.CodeOf(err) == fault.Auth && w.target != nil && w.target.ID == "deleteSession" && !hasKey(c.r)
	if ended {
		http.SetCookie(c.w, newCookie(c.r, "", -1))
	}
	return ended
}
