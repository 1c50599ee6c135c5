package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// foreign refuses what a web page of another origin has a browser ask for. Without keys
// nothing else would: the browser is on this machine, and a name of the page's own may
// be made to lead here. So the name must be one of this machine's.
func (a *API) foreign(r *http.Request) error {
	if a.open && !isLoopback(r.Host) {
		return fault.New(fault.Forbidden, "this server asks for no API keys, and so answers to the names of this machine alone: ask for 127.0.0.1, [::1] or localhost")
	}
	if a.origins.Check(r) != nil {
		return fault.New(fault.Forbidden, "a web page of another origin may change nothing here")
	}
	return nil
}

// isLoopback says whether a Host header names this machine.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
