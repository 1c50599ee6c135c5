package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// checkOrigin refuses requests that a browser makes for a web page of another origin. On a server
// without keys there is no other protection: the browser runs on this machine, and the page may
// make its own host name resolve to it. So the Host header must name a loopback address.
func (a *API) checkOrigin(r *http.Request) error {
	if a.noKeys && !isLoopback(r.Host) {
		return fault.New(fault.Forbidden, "this server runs without API keys and accepts only loopback host names: use 127.0.0.1, [::1] or localhost")
	}
	if a.origins.Check(r) != nil {
		return fault.New(fault.Forbidden, "web pages from another origin are not allowed to make changes: send the request from a program or from the same origin")
	}
	return nil
}

// isLoopback reports whether a Host header names this machine.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
