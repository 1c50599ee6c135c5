package keys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Groups are the route groups to which a key can be restricted: the tags of the API.
var Groups = []string{"approvals", "batches", "bulk", "claims", "handlers", "keys", "lifecycles", "operations", "reactions", "runs", "scopes", "secrets", "streams", "tasks",
	"visibility", "wallets", "webhooks", "workspaces"}

// Limits of restrictions.
const (
	MaxLifecycles = 100
	MaxNetworks   = 100
)

// Restrictions are what a key may do less than its role. An empty list restricts nothing. Handlers are apart, because they are
// older.
type Restrictions struct {
	RouteGroups []string       `json:"routeGroups,omitempty"`
	Lifecycles  []string       `json:"lifecycles,omitempty"`
	From        []netip.Prefix `json:"from,omitempty"` // networks of the caller
}

// Restricted reports whether the key may do less than its role.
func (k Key) Restricted() bool {
	return !k.Restrictions.empty() || len(k.Handlers) > 0
}

// empty reports whether there is no restriction.
func (r Restrictions) empty() bool { return len(r.RouteGroups)+len(r.Lifecycles)+len(r.From) == 0 }

// MayUse reports whether the key may use a route group.
func (r Restrictions) MayUse(group string) bool {
	return len(r.RouteGroups) == 0 || slices.Contains(r.RouteGroups, group)
}

// MayEnter reports whether the key may be used from an address.
func (r Restrictions) MayEnter(from netip.Addr) bool { return len(r.From) == 0 || In(r.From, from) }

// In reports whether a network has an address. An IPv4 address may be mapped into IPv6; a zone does not count.
func In(networks []netip.Prefix, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// ParseNetwork parses a network (10.1.0.0/16), or an address, which is a network of one.
func ParseNetwork(text string) (netip.Prefix, error) {
	n, err := netip.ParsePrefix(text)
	if err != nil {
		addr, failed := netip.ParseAddr(text)
		if failed != nil || addr.Zone() != "" {
			return n, fmt.Errorf("%q is not a network: write one such as 10.1.0.0/16 or 2001:db8::/32, or an address", text)
		}
		n = netip.PrefixFrom(addr, addr.BitLen())
	}
	switch {
	case n.Addr().Is4In6():
		return n, fmt.Errorf("%q is an IPv4 network in IPv6 notation: write it in IPv4 notation", text)
	case n != n.Masked():
		return n, fmt.Errorf("%q has bits beyond its length: write %s, or the address alone", text, n.Masked())
	}
	return n, nil
}

// ParseNetworks parses networks for a key.
func ParseNetworks(texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		n, err := ParseNetwork(text)
		if err != nil {
			return nil, wrong("from", "from: %v", err)
		}
		all = append(all, n)
	}
	return all, nil
}

func (a CreateArgs) checkRestrictions() error {
	r := a.Restrictions
	for i, g := range r.RouteGroups {
		if !slices.Contains(Groups, g) {
			return wrong("routeGroups", "%q is not a route group: the groups are %s", g, strings.Join(Groups, ", "))
		}
		if slices.Contains(r.RouteGroups[:i], g) {
			return wrong("routeGroups", "route group %q is listed twice: keep one of them", g)
		}
	}
	if err := checkNames("lifecycle", r.Lifecycles, MaxLifecycles); err != nil {
		return err
	}
	if slices.Contains(r.Lifecycles, Everyone) {
		return wrong("lifecycles", "%q is not a lifecycle: omit lifecycles to allow all", Everyone)
	}
	if len(r.Lifecycles) > 0 && len(a.Handlers) > 0 {
		return wrong("lifecycles", "a key cannot be restricted to both lifecycles and handlers, because the tasks of a handler can be of any lifecycle: use one of them")
	}
	if len(r.From) > MaxNetworks {
		return wrong("from", "there may be at most %d networks, got %d", MaxNetworks, len(r.From))
	}
	return nil
}

// text returns the restrictions as they are stored.
func (r Restrictions) text() string {
	text, _ := json.Marshal(r) // cannot fail
	return string(text)
}

// parseRestrictions decodes stored restrictions. A restriction that a later version has added is an error: without it, the key would
// be allowed more.
func parseRestrictions(text []byte) (r Restrictions, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&r)
	return r, err
}

func (r Restrictions) clone() Restrictions {
	return Restrictions{slices.Clone(r.RouteGroups), slices.Clone(r.Lifecycles), slices.Clone(r.From)}
}
