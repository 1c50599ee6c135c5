package lifecycleconfig

import (
	"maps"
	"slices"
)

// ClaimState is a status that a crash may leave an entity in, and what is needed
// to free it from there.
type ClaimState struct {
	Workflow string // the config that declares it
	Module   string // whose janitor frees it
	Into     string
	Revert   string
	Table    string // "" is Holdfast's own
}

// Claims returns each claim status once, by rising name. REQUIRES: R6, or which of
// two reverts it has is not defined.
func (c *Config) Claims() []ClaimState {
	found := make(map[string]ClaimState)
	for i := range c.Steps {
		for _, u := range uses("", c.Steps[i].Claim) {
			found[u.value.Into] = c.claimState(u.value)
		}
	}
	all := make([]ClaimState, 0, len(found))
	for _, into := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[into])
	}
	return all
}

// ClaimStatuses are the names of the claim statuses, rising.
func (c *Config) ClaimStatuses() []string {
	all := []string{}
	for _, x := range c.Claims() {
		all = append(all, x.Into)
	}
	return all
}

func (c *Config) claimState(claim Claim) ClaimState {
	s := ClaimState{Workflow: c.Workflow, Module: c.OwningModule, Into: claim.Into, Revert: claim.Revert}
	if c.Table != nil {
		s.Table = c.Table.Name
	}
	return s
}
