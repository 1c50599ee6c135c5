package cli

import (
	"strings"

	"github.com/holdfast-go/holdfast/httpapi"
)

// grantForm describes the syntax of a grant in errors.
const grantForm = "write NAME:claim=groups,value=payments,workspace=shop,role=worker,requesters=alice bob, or with workspace-claim=tenant instead of a workspace"

// issuer returns the issuer whose tokens the server accepts, or nil.
func (c *serveCommand) issuer() (*httpapi.OIDC, error) {
	o := &httpapi.OIDC{Issuer: c.OIDCIssuer, Audience: c.OIDCAudience, JWKS: c.OIDCJWKS}
	err := namedOptions{"--oidc-grant", "grant", grantForm}.parse(c.OIDCGrant, func(name string, v options) error {
		o.Grants = append(o.Grants, httpapi.OIDCGrant{Name: name, Claim: v["claim"], Value: v["value"], Workspace: v["workspace"], WorkspaceClaim: v["workspace-claim"],
			Role: v["role"], Requesters: strings.Fields(v["requesters"])})
		return nil
	}, "claim", "value", "workspace", "workspace-claim", "role", "requesters")
	switch {
	case err != nil:
		return nil, err
	case o.Issuer+o.Audience+o.JWKS == "" && len(o.Grants) == 0:
		return nil, nil
	case o.Issuer == "" || o.Audience == "" || len(o.Grants) == 0:
		return nil, misuse("tokens need --oidc-issuer, --oidc-audience and at least one --oidc-grant: set all of them, or none")
	}
	return o, nil
}
