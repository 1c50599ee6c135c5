package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

const (
	// refreshEvery is the age at which keys are loaded again, before requests use them.
	refreshEvery = 5 * time.Minute
	// loadEvery is the minimum time between two loads, so that tokens with invented keys cannot make the server flood the issuer.
	loadEvery = 5 * time.Second
	// maxPause is the maximum time between two loads after failed ones. It doubles with each of them.
	maxPause = time.Minute
	// maxAge is how long keys are used when they cannot be loaded again.
	maxAge = time.Hour
	// loadTimeout is the timeout of a load.
	loadTimeout = 5 * time.Second
	maxDocument = 256 << 10
)

// source finds the issuer's keys with an id, or all keys for "".
type source interface {
	find(ctx context.Context, id string) ([]key, error)
}

func withID(all []key, id string) (some []key) {
	for _, k := range all {
		if id == "" || k.id == id {
			some = append(some, k)
		}
	}
	return some
}

// remoteKeys are keys at a URL. They are loaded when they are first needed, when they are older than refreshEvery, and when a token
// names an unknown key, but at most once per loadEvery, and less often after failures. Concurrent requests wait for one load. Keys that
// cannot be loaded again are used until maxAge; then, and for unknown keys while loads fail, the error is [fault.Unavailable]: an outage must not look like a bad
// token.
type remoteKeys struct {
	Config
	client *http.Client
	now    func() time.Time

	mu      sync.Mutex
	keys    []key
	at      time.Time     // start of the load that returned keys
	tried   time.Time     // start of the last load
	failed  error         // of the last load
	pause   time.Duration // until the next load
	loading chan struct{} // closed when the load in flight ends; nil without one
}

func newRemoteKeys(c Config) *remoteKeys {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	t.MaxResponseHeaderBytes = 32 << 10
	return &remoteKeys{Config: c, now: clock.Now, client: &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if first := via[0].URL; len(via) > 3 || r.URL.Host != first.Host || r.URL.Scheme != first.Scheme {
			return fmt.Errorf("the redirect to %s is not followed: configure the final URL", r.URL.Redacted())
		}
		return nil
	}}}
}

func (s *remoteKeys) find(ctx context.Context, id string) ([]key, error) {
	some, loading, err := s.look(ctx, id, true)
	if loading == nil {
		return some, err
	}
	select {
	case <-loading:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	some, _, err = s.look(ctx, id, false)
	return some, err
}

// look returns keys or, if they are old or not known, the load to wait for. The load has its own goroutine, because its first caller may
// leave before the others.
func (s *remoteKeys) look(ctx context.Context, id string, first bool) (some []key, loading chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	usable := !s.at.IsZero() && now.Sub(s.at) < maxAge
	if usable {
		some = withID(s.keys, id)
	}
	stale := len(some) == 0 || now.Sub(s.at) >= refreshEvery
	if first && stale && s.loading == nil && (s.tried.IsZero() || now.Sub(s.tried) >= s.pause) {
		s.loading, s.tried = make(chan struct{}), now
		go s.reload(context.WithoutCancel(ctx), now, s.loading)
	}
	switch {
	case first && stale && s.loading != nil:
		return nil, s.loading, nil
	case len(some) > 0:
		return some, nil, nil
	case !usable || s.failed != nil:
		return nil, nil, fault.New(fault.Unavailable, "the token cannot be verified, because the issuer of tokens cannot be reached: try again").AsRetryable().Wrap(s.failed)
	}
	return nil, nil, nil
}

func (s *remoteKeys) reload(ctx context.Context, begun time.Time, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	all, skipped, err := s.load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(done)
	s.loading = nil
	if err != nil {
		s.Log.Warn("the keys of the OIDC issuer cannot be loaded", "url", s.Issuer, "error", err)
		if s.failed != nil {
			s.pause = min(2*s.pause, maxPause)
		} else {
			s.pause = loadEvery
		}
	} else {
		if len(all) == 0 && (s.at.IsZero() || len(s.keys) > 0) {
			s.Log.Warn(noKeys, "url", s.Issuer, "error", skipped)
		} else if s.at.IsZero() || s.failed != nil {
			s.Log.Info("the keys of the OIDC issuer are loaded", "url", s.Issuer, "count", len(all))
		}
		s.keys, s.at, s.pause = all, begun, loadEvery
	}
	s.failed = err
}

// load fetches the keys, at the URL that the issuer publishes if none is configured.
func (s *remoteKeys) load(ctx context.Context) (all []key, skipped, err error) {
	from := s.JWKS
	if from == "" {
		text, err := s.fetch(ctx, strings.TrimSuffix(s.Issuer, "/")+"/.well-known/openid-configuration")
		if err != nil {
			return nil, nil, err
		}
		var doc struct {
			Issuer string `json:"issuer"`
			JWKS   string `json:"jwks_uri"`
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			return nil, nil, fmt.Errorf("the discovery document is not valid: %w", err)
		}
		if doc.Issuer != s.Issuer {
			return nil, nil, fmt.Errorf("the discovery document is of the issuer %.200q, want %q: configure exactly the issuer that it names", doc.Issuer, s.Issuer)
		}
		if err := checkURL("jwks_uri", doc.JWKS); err != nil {
			return nil, nil, err
		}
		if strings.HasPrefix(s.Issuer, "https:") && !strings.HasPrefix(doc.JWKS, "https:") {
			return nil, nil, fmt.Errorf("jwks_uri %.200q must begin with https://, as the issuer does", doc.JWKS)
		}
		from = doc.JWKS
	}
	text, err := s.fetch(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	return parseKeys(text)
}

func (s *remoteKeys) fetch(ctx context.Context, from string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s responds with %s", from, resp.Status)
	case len(text) > maxDocument:
		return nil, fmt.Errorf("the response of %s exceeds %d bytes", from, maxDocument)
	}
	return text, nil
}

// fileKeys are the keys in a file, which is followed: each token is verified with the keys that it has then. While it cannot be used,
// the last keys are, until maxAge.
type fileKeys struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu     sync.Mutex
	read   bool
	text   string // of the file when it was last read; "" if that failed
	failed error  // of the last text
	keys   []key
	at     time.Time // when the file was last usable
}

func (s *fileKeys) find(_ context.Context, id string) ([]key, error) {
	all, err := s.follow()
	return withID(all, id), err
}

func (s *fileKeys) follow() ([]key, error) {
	text, err := os.ReadFile(s.path)
	if err != nil {
		text = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.read || string(text) != s.text {
		s.change(text, err)
	}
	switch {
	case s.failed == nil:
		s.at = now
	case s.at.IsZero():
		return nil, fault.New(fault.Validation, "the keys of the issuer in %q cannot be used (%v): write its JWKS into the file", s.path, s.failed)
	case now.Sub(s.at) >= maxAge:
		return nil, fault.New(fault.Unavailable, "the token cannot be verified, because the file with the keys of the issuer cannot be used: try again").AsRetryable().Wrap(s.failed)
	}
	return s.keys, nil
}

// change uses another text of the file. REQUIRES: mu
func (s *fileKeys) change(text []byte, err error) {
	var all []key
	var skipped error
	if err == nil {
		all, skipped, err = parseKeys(text)
	}
	s.read, s.text, s.failed = true, string(text), err
	switch {
	case err != nil:
		s.log.Warn("the changed keys of the OIDC issuer cannot be loaded: the last ones are still used", "file", s.path, "error", err)
		return
	case len(all) == 0:
		s.log.Warn(noKeys, "file", s.path, "error", skipped)
	default:
		s.log.Info("the keys of the OIDC issuer are loaded", "file", s.path, "count", len(all))
	}
	s.keys = all
}

// noKeys is logged when all tokens are refused.
const noKeys = "the OIDC issuer has no usable keys: no token is accepted"

// checkURL requires HTTPS, except on this machine.
func checkURL(what, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return fault.New(fault.Validation, "%s must be a URL such as https://login.example.com, without a user and a fragment, got %q", what, text)
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fault.New(fault.Validation, "%s must begin with https://, except on a loopback address, got %q", what, text)
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

func refuse(reason, format string, args ...any) error {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

// IsRefusal returns the refusal in an error.
func IsRefusal(err error) (*Refusal, bool) { return errors.AsType[*Refusal](err) }
