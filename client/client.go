// Package client is a client for the HTTP API of a Holdfast server.
//
//	c, err := client.New("https://holdfast.example.org", client.Options{APIKey: os.Getenv("HOLDFAST_KEY")})
//	done, err := c.FireStep(ctx, "invoice", "i1", "close", wire.Fire{Requester: "admin"}, client.Key(requestID))
//	if errors.Is(err, fault.Of(fault.ClaimFailed)) { … } // another request is closing it
//
// Each operation of the API's OpenAPI document has a method of the same name that uses the types in package wire. A
// refusal is a [*fault.Error] with the code and the fields of the server's response. If the server cannot be reached,
// or a proxy responds in its place, the error wraps the cause. Its code is [fault.OutcomeUnknown] if the call changes
// something and may have been sent: the call may or may not have taken effect. Otherwise it is [fault.Unavailable], and
// nothing was changed.
//
// A call that reads is retried after a temporary failure. A call that changes something is retried only with an
// idempotency key ([Key]), which makes it take effect once. Without a key, it is sent only once.
//
// A list is an iterator that reads one page after another and ends with the first error:
//
//	for e, err := range c.ListEntities(ctx, "invoice", client.EntityFilter{Status: "open"}) {
//		if err != nil { return err }
//		…
//	}
package client

//go:generate go test ../httpapi -count=1 -run ^TestClientIsGenerated$ -write-client

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Options configures a client. The zero value is ready to use with a server without API keys.
type Options struct {
	// APIKey is the API key (hf_…), or the token of an issuer, that is sent with every request. The default is none.
	APIKey string
	// Workspace selects the workspace on a server without API keys. With an API key, the key determines the
	// workspace. The default is the server's default workspace.
	Workspace string
	// HTTP sends the requests. Redirects are never followed, because a request that changes
	// something must not be sent twice. Its Timeout also applies to [Client.FollowFeed]. The default
	// waits 90 seconds for the response headers.
	HTTP *http.Client
	// TLS configures connections to an https URL, for example with the certificate of a client or of a private CA. It cannot be
	// combined with HTTP. The default trusts the system's certificates.
	TLS *tls.Config
	// MaxAttempts is the maximum number of attempts for a request that may be retried. The default
	// is 6, over about 3 seconds.
	MaxAttempts int
	// UserAgent is the User-Agent header. The default is "holdfast-client".
	UserAgent string
}

const (
	defaultAttempts = 6
	// firstPause is the delay before the second attempt. Each further delay is twice as long, up to
	// longestPause.
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// maxRetryAfter is the maximum Retry-After that the client waits for. Beyond it, the call
	// returns the error.
	maxRetryAfter = time.Minute
	// silence is the maximum time without data on an event stream before it is considered dead. The
	// server sends a heartbeat every 15 seconds.
	silence = 45 * time.Second
	// headersWithin is longer than any response of the server takes.
	headersWithin = 90 * time.Second
)

// Client calls one server. It is safe for concurrent use.
type Client struct {
	base     string // including /api/v1
	o        Options
	http     *http.Client
	own      bool          // http has a transport of its own, which Close closes
	pause    time.Duration // firstPause, except in tests
	silence  time.Duration
	patience time.Duration // maxRetryAfter
}

// New returns a client for the server at a URL, such as http://127.0.0.1:7070. It does not connect to the server yet.
func New(base string, o Options) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fault.New(fault.Validation, "the server URL must be an http or https URL such as http://127.0.0.1:7070, without a user, query or fragment")
	}
	if strings.ContainsAny(o.APIKey+o.Workspace+o.UserAgent, "\r\n\x00") {
		return nil, fault.New(fault.Validation, "APIKey, Workspace and UserAgent must not contain line breaks or NUL")
	}
	if o.HTTP != nil && o.TLS != nil {
		return nil, fault.New(fault.Validation, "HTTP and TLS cannot be combined: set the TLS configuration in the transport of HTTP")
	}
	if o.MaxAttempts < 0 {
		return nil, fault.New(fault.Validation, "MaxAttempts must be 1 or more, or 0 for the default, got %d", o.MaxAttempts)
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = defaultAttempts
	}
	if o.UserAgent == "" {
		o.UserAgent = "holdfast-client"
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/") + "/api/v1", o: o, pause: firstPause, silence: silence, patience: maxRetryAfter}
	c.http, c.own = withoutRedirects(o.HTTP, o.TLS)
	return c, nil
}

// withoutRedirects returns a copy of a client that follows no redirects. For nil, it returns a new client with the TLS
// configuration, and own is true.
func withoutRedirects(h *http.Client, config *tls.Config) (_ *http.Client, own bool) {
	var c http.Client
	if h != nil {
		c = *h
	} else {
		own = true
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout = headersWithin
		t.TLSClientConfig = config.Clone()
		c.Transport = t
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c, own
}

// Close closes idle connections. If [Options.HTTP] was set, Close does nothing.
func (c *Client) Close() {
	if c.own {
		c.http.CloseIdleConnections()
	}
}
