// Package client speaks to a Holdfast server over its HTTP API.
//
//	c, err := client.New("https://holdfast.example.org", client.Options{Key: os.Getenv("HOLDFAST_KEY")})
//	done, err := c.FireStep(ctx, "invoice", "i1", "close", wire.Fire{Requester: "admin"}, client.Key(requestID))
//	if errors.Is(err, fault.Of(fault.ClaimFailed)) { … } // somebody else is closing it
//
// Each operation of the API has a method of its name. What goes over the wire is of
// package wire; a refusal is a [*fault.Error] of the code that the server gave it,
// with its facts. A server that cannot be reached, or something between that answers
// in its place, is [fault.Unavailable], and what went wrong is wrapped.
//
// A call that reads is sent again when it failed for the moment. One that changes
// something is sent again only if it has a key ([Key]): then the server does it once,
// however often it comes. Without a key it is sent once, and after
// [fault.Unavailable] it may have been done or not.
//
// A list is an iterator that reads page after page, and ends with the first error:
//
//	for e, err := range c.ListEntities(ctx, "invoice", client.EntityFilter{Status: "open"}) {
//		if err != nil { return err }
//		…
//	}
package client

//go:generate go test ../httpapi -count=1 -run ^TestClientIsGenerated$ -write-client

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Options says how a client works. The zero value is ready to use, with a server that
// asks for no keys.
type Options struct {
	// Key is the API key, hf_…; the default is none.
	Key string
	// Workspace is sent along for a server that asks for no keys. With a key, the
	// key says it. The default is the server's.
	Workspace string
	// HTTP does the requests. Redirects are not followed, whatever it says: a
	// request that changes something must not be sent twice. Its Timeout would end
	// [Client.Follow] too. The default waits 90 seconds for an answer to begin.
	HTTP *http.Client
	// Attempts is how often a request is sent at the most, if it may be sent again;
	// the default is 6, over about 3 seconds.
	Attempts int
	// UserAgent is sent along; the default is "holdfast-client".
	UserAgent string
}

const (
	defaultAttempts = 6
	// firstPause is the pause before the second try. The next ones are twice as
	// long each, up to longestPause.
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// mostPatience is the longest that a server may ask to wait for. Past it, the
	// caller is told instead.
	mostPatience = time.Minute
	// silence is how long nothing may come over a stream of events before it is
	// taken for dead. A server says something every 15 seconds.
	silence = 45 * time.Second
	// headersWithin is longer than the server takes for any answer.
	headersWithin = 90 * time.Second
)

// Client speaks to one server. It is safe for concurrent use.
type Client struct {
	base     string // with /api/v1
	o        Options
	http     *http.Client
	own      bool
	pause    time.Duration
	silence  time.Duration
	patience time.Duration
}

// New makes a client of the server at a URL, such as http://127.0.0.1:7070. Nothing
// is sent yet.
func New(base string, o Options) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fault.New(fault.Validation, "the URL of a server is such as http://127.0.0.1:7070, without user, query and fragment")
	}
	if strings.ContainsAny(o.Key+o.Workspace+o.UserAgent, "\r\n\x00") {
		return nil, fault.New(fault.Validation, "a key, a workspace and a user agent are one line each")
	}
	if o.Attempts < 0 {
		return nil, fault.New(fault.Validation, "there are %d attempts: it is 1 or more, or 0 for the default", o.Attempts)
	}
	if o.Attempts == 0 {
		o.Attempts = defaultAttempts
	}
	if o.UserAgent == "" {
		o.UserAgent = "holdfast-client"
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/") + "/api/v1", o: o, pause: firstPause, silence: silence, patience: mostPatience}
	c.http, c.own = doer(o.HTTP)
	return c, nil
}

// doer is a copy of a client that follows no redirects.
func doer(h *http.Client) (_ *http.Client, own bool) {
	var c http.Client
	if h != nil {
		c = *h
	} else {
		own = true
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout = headersWithin
		c.Transport = t
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c, own
}

// Close closes the connections that are not in use. A client that was given its own
// [http.Client] leaves them to that.
func (c *Client) Close() {
	if c.own {
		c.http.CloseIdleConnections()
	}
}
