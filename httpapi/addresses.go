package httpapi

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// clientAddr returns the address of the client, or the zero address, which is in no network. Behind trusted proxies it is the last one in
// X-Forwarded-For that is not a trusted proxy: the ones before it are only what the client says.
func (a *API) clientAddr(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	addr := at.Addr()
	if !keys.In(a.o.TrustedProxies, addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop, ok := forwardedAddr(strings.TrimSpace(hops[i]))
		if !ok {
			if strings.TrimSpace(hops[i]) == "" && len(hops) == 1 { // the request is the proxy's own
				return addr
			}
			return netip.Addr{}
		}
		if addr = hop; !keys.In(a.o.TrustedProxies, addr) {
			return addr
		}
	}
	return addr
}

// forwardedAddr parses an address, which some proxies write with a port.
func forwardedAddr(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr(), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return addr, err == nil
}

// checkAddr refuses a client outside of the networks that may use the server. Load balancers and monitoring ask for /healthz and /readyz
// from anywhere.
func (a *API) checkAddr(r *http.Request) error {
	if len(a.o.AllowFrom) == 0 || r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		return nil
	}
	addr := a.clientAddr(r)
	if keys.In(a.o.AllowFrom, addr) {
		return nil
	}
	a.refusedFrom("server", addr, r)
	return fault.New(fault.Forbidden, "this server does not accept requests from this address")
}

// mayEnter refuses a key that is used from outside of its networks.
func (a *API) mayEnter(k keys.Key, r *http.Request) error {
	if len(k.Restrictions.From) == 0 {
		return nil
	}
	addr := a.clientAddr(r)
	if k.Restrictions.MayEnter(addr) {
		return nil
	}
	a.refusedFrom("key", addr, r)
	return fault.New(fault.Forbidden, "the API key may not be used from this address: use it from one of the networks to which it is restricted")
}

// refusedFrom counts and logs a request from an address that a list does not have.
func (a *API) refusedFrom(list string, addr netip.Addr, r *http.Request) {
	a.metrics.Addresses.WithLabelValues(list).Inc()
	if a.refusalLogs.Allow() {
		a.log.LogAttrs(r.Context(), slog.LevelInfo, "address refused", slog.String("reason", "not in the list of the "+list), slog.String("address", addr.String()), slog.String("request", requestID(r.Context())))
	}
}
