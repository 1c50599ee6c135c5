package httpapi

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/oidc"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
)

// OIDC describes an OpenID Connect issuer whose tokens are accepted as bearer tokens: signed JWTs, with an expiry and a subject. What a
// token may do is the sum of the grants that it matches; without one it may do nothing.
type OIDC struct {
	// Issuer is the URL of the issuer, exactly as its tokens have it in iss. It must begin with https://, except on a loopback address.
	Issuer string
	// Audience must be one of the values of aud in a token.
	Audience string
	// JWKS is a file or a URL with the issuer's public keys. The default is the URL that the issuer publishes.
	JWKS string
	// Grants give rights to tokens.
	Grants []OIDCGrant
}

// OIDCGrant gives rights in one workspace to the tokens that have a value of a claim. If a token matches several grants of a workspace,
// a request has the strongest role that permits the request, and the requesters of the grants with that role.
type OIDCGrant struct {
	// Name is for errors.
	Name string
	// Claim is the name of a claim, or a JSON pointer to it (/realm_access/roles). The claim must be the string Value, or an array that
	// has it; "*" stands for any string. The claim scope is a list that spaces separate.
	Claim, Value string
	// Workspace is the workspace in which the token has the rights. Alternatively, WorkspaceClaim is a claim that has the name of the
	// workspace, or an array of names.
	Workspace, WorkspaceClaim string
	// Role is read, worker, operate or admin.
	Role string
	// Requesters are the requesters for which the token may act; "*" stands for all.
	Requesters []string
}

// timeTTL is how long a time of the database is used. It is that of a cached API key.
const timeTTL = 2 * time.Second

// refusalsLogged is the number of refused tokens and addresses per second that are logged. All are counted.
const refusalsLogged = 10

// tokens verifies tokens. Their expiry is compared with the time of the database, like that of API keys.
type tokens struct {
	api      *API
	verifier *oidc.Verifier
	grants   []oidc.Grant

	mu   sync.Mutex
	time time.Time // of the database
	at   time.Time // when it was asked for, by the node's clock
}

// acceptTokens makes the API accept the tokens of the issuer.
func (a *API) acceptTokens(ctx context.Context) error {
	o := a.o.OIDC
	switch {
	case o == nil:
		return nil
	case a.noKeys:
		return fault.New(fault.Validation, "OIDC needs a server with API keys: do not set NoKeys")
	case len(o.Grants) == 0:
		return fault.New(fault.Validation, "OIDC needs at least one grant, because tokens have no rights without one")
	}
	t := &tokens{api: a}
	for _, g := range o.Grants {
		one := oidc.Grant{Name: g.Name, Claim: g.Claim, Value: g.Value, Workspace: g.Workspace, WorkspaceClaim: g.WorkspaceClaim, Role: keys.Role(g.Role), Requesters: g.Requesters}
		if err := one.Check(); err != nil {
			return err
		}
		t.grants = append(t.grants, one)
	}
	var err error
	if t.verifier, err = oidc.New(oidc.Config{Issuer: o.Issuer, Audience: o.Audience, JWKS: o.JWKS, Log: a.log}); err != nil {
		return err
	}
	t.verifier.Load(ctx)
	a.tokens = t
	return nil
}

// invalidToken is the error for every token that is not accepted. Only the log says why, except for an expired token: it was valid,
// and its holder can get a new one.
var invalidToken = fault.New(fault.Auth, "the token is invalid: send a valid token of the issuer, or an API key, in the Authorization header")

// identify returns the caller with a token.
func (t *tokens) identify(r *http.Request, text string) (identity, error) {
	ctx := r.Context()
	token, err := t.verify(ctx, text)
	if err != nil {
		return identity{}, t.refused(ctx, err)
	}
	granted := oidc.Granted(t.grants, token)
	space := r.Header.Get(workspaceHeader)
	switch names := slices.Sorted(maps.Keys(granted)); {
	case len(names) == 0:
		t.count(ctx, &oidc.Refusal{Reason: oidc.Ungranted, Detail: "no grant matches the token of " + token.Actor()})
		return identity{}, fault.New(fault.Forbidden, "the token has no rights on this server, because none of its grants matches it: ask the operator of the server for one")
	case len(names) > 1 && space == "":
		return identity{}, fault.New(fault.Validation, "the token has rights in several workspaces: select one with the header %s", workspaceHeader).With("workspaces", names)
	case space == "":
		space = names[0]
	case granted[space] == nil:
		return identity{}, fault.New(fault.Forbidden, "the token has no rights in the workspace in the header %s: correct or omit the header", workspaceHeader)
	}
	permits := func(keys.Role) bool { return true }
	if target := watchOf(ctx).target; target != nil {
		permits = target.May
	}
	role, requesters := oidc.Rights(granted[space], permits)
	return identity{bearer: token, key: keys.Key{Workspace: space, Role: role, Requesters: requesters}}, nil
}

// verify returns the claims of a token that is valid now.
func (t *tokens) verify(ctx context.Context, text string) (*oidc.Token, error) {
	token, err := t.verifier.Verify(ctx, text)
	if err != nil {
		return nil, err
	}
	now, err := t.now(ctx)
	if err != nil {
		return nil, err
	}
	return token, token.Check(now)
}

// recheck refuses a token that has expired, also if the issuer cannot be reached.
func (t *tokens) recheck(ctx context.Context, token *oidc.Token) error {
	now, err := t.now(ctx)
	if err == nil {
		err = token.Check(now)
	}
	if _, ok := oidc.IsRefusal(err); ok {
		return t.refused(ctx, err)
	}
	return nil
}

// now returns the time of the database. While the database cannot be reached, the last known time goes on.
func (t *tokens) now(ctx context.Context) (time.Time, error) {
	t.mu.Lock()
	last, at := t.time, t.at
	t.mu.Unlock()
	begun := clock.Now()
	age := begun.Sub(at)
	if !at.IsZero() && age >= 0 && age < timeTTL {
		return last.Add(age), nil
	}
	s, err := store.Ask.DoAt(ctx, t.api.engine, store.Partition{}, struct{}{})
	switch {
	case err == nil:
	case at.IsZero() || age < 0:
		return time.Time{}, err
	default:
		return last.Add(age), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.time, t.at = s.Now, begun
	return s.Now, nil
}

// refused returns the error for the caller, and counts and logs the refusal.
func (t *tokens) refused(ctx context.Context, err error) error {
	r, ok := oidc.IsRefusal(err)
	if !ok {
		if fault.CodeOf(err) == fault.Unavailable {
			t.api.metrics.Tokens.WithLabelValues("unavailable").Inc()
		}
		return err
	}
	t.count(ctx, r)
	if r.Reason == oidc.Expired {
		return fault.New(fault.Auth, "the token has expired: get a new one from the issuer")
	}
	return invalidToken
}

func (t *tokens) count(ctx context.Context, r *oidc.Refusal) {
	t.api.metrics.Tokens.WithLabelValues(r.Reason).Inc()
	if t.api.refusalLogs.Allow() {
		t.api.log.Info("token refused", "reason", r.Reason, "error", r.Detail, "request", requestID(ctx))
	}
}
