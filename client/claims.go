package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// ClaimStep takes the claim of a step: its body runs here, and not on the server.
func (c *Client) ClaimStep(ctx context.Context, lifecycle, id string, in wire.NewClaim, o ...Option) (wire.Claimed, error) {
	return do[wire.Claimed](ctx, c, newRequest(http.MethodPost, in, "lifecycles", lifecycle, "entities", id, "claims"), o)
}

// OperationFilter chooses operations and claims: held, due or uncertain ones, or
// operations that are contradicted; "" is all.
type OperationFilter struct{ State string }

// ListClaims lists who works on what.
func (c *Client) ListClaims(ctx context.Context, f OperationFilter) iter.Seq2[wire.HeldClaim, error] {
	return pages(func(p Page) (wire.List[wire.HeldClaim], error) { return c.ListClaimsPage(ctx, f, p) })
}

// ListClaimsPage lists a page of who works on what.
func (c *Client) ListClaimsPage(ctx context.Context, f OperationFilter, p Page, o ...Option) (wire.List[wire.HeldClaim], error) {
	return listed[wire.HeldClaim](ctx, c, list(p, "claims").set("state", f.State), o)
}

// RenewClaim extends a claim.
func (c *Client) RenewClaim(ctx context.Context, token string, in wire.Renew, o ...Option) (wire.Renewed, error) {
	return do[wire.Renewed](ctx, c, newRequest(http.MethodPost, in, "claims", token, "renew"), o)
}

// SettleClaim ends a claim with what came of it. Settled again with the same outcome,
// it answers the same.
func (c *Client) SettleClaim(ctx context.Context, token string, in wire.Settle, o ...Option) (wire.Settled, error) {
	return do[wire.Settled](ctx, c, newRequest(http.MethodPost, in, "claims", token, "settle"), o)
}

// ReleaseClaim gives a claim back.
func (c *Client) ReleaseClaim(ctx context.Context, token string, in wire.Release, o ...Option) (wire.Settled, error) {
	return do[wire.Settled](ctx, c, newRequest(http.MethodPost, in, "claims", token, "release"), o)
}

// JournalEffect begins an effect under a claim, or says what became of it.
func (c *Client) JournalEffect(ctx context.Context, token string, in wire.EffectCall, o ...Option) (wire.EffectState, error) {
	return do[wire.EffectState](ctx, c, newRequest(http.MethodPost, in, "claims", token, "effects"), o)
}

// ListOperations lists the operations that are not at their end.
func (c *Client) ListOperations(ctx context.Context, f OperationFilter) iter.Seq2[wire.Operation, error] {
	return pages(func(p Page) (wire.List[wire.Operation], error) { return c.ListOperationsPage(ctx, f, p) })
}

// ListOperationsPage lists a page of the operations that are not at their end.
func (c *Client) ListOperationsPage(ctx context.Context, f OperationFilter, p Page, o ...Option) (wire.List[wire.Operation], error) {
	return listed[wire.Operation](ctx, c, list(p, "operations").set("state", f.State), o)
}

// AcknowledgeContradictions records that a person has seen contradictions of an operation, and returns
// those that are left.
func (c *Client) AcknowledgeContradictions(ctx context.Context, id string, in wire.Acknowledge, o ...Option) (wire.Acknowledged, error) {
	return do[wire.Acknowledged](ctx, c, newRequest(http.MethodPost, in, "operations", id, "acknowledge"), o)
}

// WithdrawOperation withdraws an operation that nobody holds. If an effect of it may have happened, it is
// uncertain then, and is to be resolved.
func (c *Client) WithdrawOperation(ctx context.Context, id string, in wire.Withdraw, o ...Option) (wire.Resolved, error) {
	return do[wire.Resolved](ctx, c, newRequest(http.MethodPost, in, "operations", id, "withdraw"), o)
}

// ResolveOperation says what happened, where that is not known.
func (c *Client) ResolveOperation(ctx context.Context, id string, in wire.Resolve, o ...Option) (wire.Resolved, error) {
	return do[wire.Resolved](ctx, c, newRequest(http.MethodPost, in, "operations", id, "resolve"), o)
}
