package lifecycleconfig

import (
	"maps"
	"slices"
)

// ClaimState is a status in which a crash may leave an entity, with the information to revert
// it.
type ClaimState struct {
	Workflow string // the config that declares it
	Module   string // the module whose janitor recovers it
	Into     string
	Revert   string
	Table    string // "" means Holdfast's own
}

// Claims returns each claim status once, sorted by name. The config must pass R6; otherwise the
// revert status is arbitrary.
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

// ClaimStatuses returns the names of the claim statuses, sorted.
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
