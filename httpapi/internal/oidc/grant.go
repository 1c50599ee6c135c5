package oidc

import (
	"slices"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Grant gives rights in a workspace to the tokens that have a value of a claim.
type Grant struct {
	Name string // in errors
	// Claim is the name of a claim, or a JSON pointer to it (/realm_access/roles). Value is the one that it must have, as a string or
	// in an array of strings; [keys.Everyone] stands for any.
	Claim, Value string
	// Workspace is the workspace, or WorkspaceClaim is the claim that has its name. A claim with several names is for each of them.
	Workspace, WorkspaceClaim string
	Role                      keys.Role
	Requesters                []string
}

// Check refuses an invalid grant.
func (g Grant) Check() error {
	switch {
	case g.Claim == "" || g.Value == "":
		return g.wrong("needs a claim and its value: the value %q stands for any", keys.Everyone)
	case (g.Workspace == "") == (g.WorkspaceClaim == ""):
		return g.wrong("needs either a workspace or the claim with the workspace")
	case !g.Role.Valid():
		return g.wrong("needs a role: %s, %s, %s or %s, got %q", keys.Read, keys.Worker, keys.Operate, keys.Admin, g.Role)
	}
	if g.Workspace != "" {
		if err := store.CheckWorkspace(g.Workspace); err != nil {
			return g.wrong("is invalid").Wrap(err)
		}
	}
	if err := keys.CheckRequesters(g.Requesters); err != nil {
		return g.wrong("is invalid: %s", err)
	}
	return nil
}

func (g Grant) wrong(format string, args ...any) *fault.Error {
	return fault.New(fault.Validation, "the grant %q "+format, append([]any{g.Name}, args...)...)
}

// workspaces returns the workspaces in which a grant gives rights to a token.
func (g Grant) workspaces(t *Token) (all []string) {
	has := t.values(g.Claim)
	switch {
	case !slices.Contains(has, g.Value) && (g.Value != keys.Everyone || len(has) == 0):
		return nil
	case g.Workspace != "":
		return []string{g.Workspace}
	}
	for _, name := range t.values(g.WorkspaceClaim) {
		if store.CheckWorkspace(name) == nil {
			all = append(all, name)
		}
	}
	return all
}

// Granted returns the grants of a token by workspace.
func Granted(all []Grant, t *Token) map[string][]Grant {
	found := make(map[string][]Grant)
	for _, g := range all {
		for _, space := range g.workspaces(t) {
			found[space] = append(found[space], g)
		}
	}
	return found
}

// strength orders the roles: each may do what those before it may.
var strength = []keys.Role{keys.Read, keys.Worker, keys.Operate, keys.Admin}

// Rights returns the rights of a request with several grants in one workspace: the strongest role that permits the request, and the
// requesters of the grants with this role. So a role never acts for the requesters of a weaker one. If none permits it, the strongest
// role is for the error.
func Rights(all []Grant, permits func(keys.Role) bool) (role keys.Role, requesters []string) {
	some := slices.DeleteFunc(slices.Clone(all), func(g Grant) bool { return !permits(g.Role) })
	if len(some) == 0 {
		some = all
	}
	for _, g := range some {
		if role == "" || slices.Index(strength, g.Role) > slices.Index(strength, role) {
			role, requesters = g.Role, nil
		}
		for _, name := range g.Requesters {
			if g.Role == role && !slices.Contains(requesters, name) {
				requesters = append(requesters, name)
			}
		}
	}
	return role, requesters
}
