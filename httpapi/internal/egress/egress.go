// Package egress makes HTTP calls to addresses that users choose: handlers and webhooks. Such a
// call must not reach what only this machine can reach: itself, the networks around it, the cloud's
// metadata service.
//
// A host name is resolved for every connection, and may resolve to a different address each time.
// So the address is checked where it is dialled: after name resolution, for every connection,
// including those of redirects. The text of the URL is checked too, because that can report an
// error earlier and in more detail, but it would not be sufficient.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
)

// Policy restricts where calls may go. The zero value allows the public internet over HTTPS.
type Policy struct {
	// Allow lists networks that may be called although they are not public, also over plain HTTP:
	// 10.1.0.0/16, 127.0.0.1/32.
	Allow []netip.Prefix
}

// Limits of a call.
const (
	MaxRedirects  = 3
	connectWithin = 5 * time.Second
	maxURL        = 2048
)

// CheckURL refuses a URL that may not be called, before its host is resolved.
func (p Policy) CheckURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, refuse("the URL must have at most %d characters, got %d", maxURL, len(text))
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, refuse("the URL is malformed: correct it")
	}
	return u, p.check(u)
}

func (p Policy) check(u *url.URL) error {
	host := u.Hostname()
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return refuse("the URL must begin with https://")
	case u.User != nil:
		return refuse("the URL must not contain a user or password")
	case host == "":
		return refuse("the URL has no host: add one")
	case u.Port() == "0":
		return refuse("the URL's port must not be 0")
	case strings.ContainsAny(host, "%"):
		return refuse("the URL's host must not have an IPv6 zone")
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		return p.checkAddr(u.Scheme, addr)
	case looksLikeAddress.MatchString(host):
		return refuse("the URL's host is a malformed IP address")
	case len(p.Allow) > 0:
		return nil
	case u.Scheme == "http":
		return refuse("the URL must begin with https://")
	case isLocalName(host):
		return refuse("host %s is the server itself; use a public host, or add its network to --allow-private", host)
	}
	return nil
}

// isLocalName reports whether a name refers to this machine.
func isLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// looksLikeAddress matches hosts that some programs interpret as IP addresses: 2130706433,
// 0177.0.0.1, 0x7f.1, 127.1.
var looksLikeAddress = regexp.MustCompile(`(?i)^(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*\.?$`)

func (p Policy) checkAddr(scheme string, addr netip.Addr) error {
	if p.allows(addr) {
		return nil
	}
	if !Public(addr) {
		return refuse("address %s is not public; use a public host, or add its network to --allow-private", addr)
	}
	if scheme == "http" {
		return refuse("the URL must begin with https://")
	}
	return nil
}

func (p Policy) allows(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, n := range p.Allow {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}

// nonPublic are networks that are not public, in addition to those that netip knows, and networks whose
// addresses embed an arbitrary IPv4 address.
var nonPublic = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
)

func prefixes(all ...string) (out []netip.Prefix) {
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// Public reports whether an address belongs to the public internet.
func Public(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.Zone() != "" {
		return false
	}
	for _, n := range nonPublic {
		if n.Contains(addr) {
			return false
		}
	}
	return true
}

// errRefused marks a refusal by the dialer.
var errRefused = errors.New("the address is not public, or the URL is not https")

// Client returns the client for calls. It follows few redirects, checks each of them, and uses no
// proxy. Every call uses a fresh connection: net/http silently resends a request if a reused
// connection breaks, also a POST with an Idempotency-Key, although the other side may have acted on
// the first one.
func (p Policy) Client() *http.Client {
	t := p.transport("https")
	t.RegisterProtocol("http", p.transport("http"))
	return &http.Client{
		Transport: t,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > MaxRedirects {
				return refuse("the receiver redirected the call more than %d times: use the final URL", MaxRedirects)
			}
			if r.Method != via[0].Method || hasBody(r) != hasBody(via[0]) {
				return refuse("the receiver's redirect changes the method: use the final URL, or redirect with 307 or 308")
			}
			return p.check(r.URL)
		},
	}
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// transport returns the transport for one scheme.
func (p Policy) transport(scheme string) *http.Transport {
	d := &net.Dialer{Timeout: connectWithin, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || p.checkAddr(scheme, at.Addr()) != nil {
			return fmt.Errorf("%w: %s", errRefused, address)
		}
		return nil
	}}
	return &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true,
		TLSHandshakeTimeout: connectWithin, MaxResponseHeaderBytes: 32 << 10, DisableCompression: true}
}

// Guarded is [Policy.Client] for callers that do not use [Do]: its transport refuses an address that must not be called, with
// a non-retryable error. The error says that nothing happened, unless a receiver has redirected the call to that address.
func (p Policy) Guarded() *http.Client {
	c := p.Client()
	c.Transport = guard{p, c.Transport}
	return c
}

type guard struct {
	policy Policy
	next   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := g.policy.CheckURL(r.URL.String())
	var resp *http.Response
	if err == nil {
		if resp, err = g.next.RoundTrip(r); !errors.Is(err, errRefused) {
			return resp, err
		}
		err = refuse("the host resolves to an address that may not be called; use a public address over https, or add its network to --allow-private").Wrap(err)
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	err = fault.NonRetryable(err)
	if r.Response == nil { // not redirected
		err = effects.NotHappened(err)
	}
	return nil, err
}

// Answer is a response, truncated at a limit.
type Answer struct {
	// Sent is set if a receiver has got the call, also if the call failed later: at a redirect that was refused, for example.
	Sent   bool
	Status int
	Header http.Header
	Body   []byte
}

// Do makes a call and reads the response, up to limit bytes; a longer one is an error. The error of a call or a redirect that
// must not be made has the code [fault.Forbidden]; after any other error the call may have arrived.
func Do(c *http.Client, r *http.Request, limit int64) (Answer, error) {
	var sent atomic.Bool
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent.Store(true) }}))
	resp, err := c.Do(r)
	if err != nil {
		failed := Answer{Sent: sent.Load()}
		if errors.Is(err, errRefused) {
			return failed, refuse("the host resolves to an address that may not be called; use a public address over https, or add its network to --allow-private").Wrap(err)
		}
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return failed, f
		}
		return failed, fault.New(fault.Unavailable, "no response from %s: check that it is reachable from the server", r.URL.Redacted()).Wrap(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	a := Answer{true, resp.StatusCode, resp.Header, body}
	switch {
	case err != nil:
		return a, fault.New(fault.Unavailable, "the connection to %s was lost before the response was complete", r.URL.Redacted()).Wrap(err)
	case int64(len(body)) > limit:
		a.Body = body[:limit]
		return a, fault.New(fault.PayloadTooLarge, "the response from %s exceeds %d bytes", r.URL.Redacted(), limit)
	}
	return a, nil
}

func refuse(format string, args ...any) *fault.Error {
	return fault.New(fault.Forbidden, "the call is refused: "+format, args...)
}
