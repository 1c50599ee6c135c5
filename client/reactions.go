package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/wire"
)

// ListReactions lists the reactions of the workspace, and the after-effects of its
// lifecycles.
func (c *Client) ListReactions(ctx context.Context) iter.Seq2[wire.Reaction, error] {
	return pages(func(p Page) (wire.List[wire.Reaction], error) { return c.ListReactionsPage(ctx, p) })
}

// ListReactionsPage lists a page of the reactions of the workspace.
func (c *Client) ListReactionsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Reaction], error) {
	return listed[wire.Reaction](ctx, c, list(p, "reactions"), o)
}

// PutReaction registers a reaction, or changes one.
func (c *Client) PutReaction(ctx context.Context, name string, in wire.PutReaction, o ...Option) (wire.Reaction, error) {
	return do[wire.Reaction](ctx, c, newRequest(http.MethodPut, in, "reactions", name), o)
}

// GetReaction returns a reaction.
func (c *Client) GetReaction(ctx context.Context, name string, o ...Option) (wire.Reaction, error) {
	return do[wire.Reaction](ctx, c, newRequest(http.MethodGet, nil, "reactions", name), o)
}

// DeleteReaction removes a reaction.
func (c *Client) DeleteReaction(ctx context.Context, name string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "reactions", name).with(o))
	return err
}

// PositionFilter chooses the positions of a reaction.
type PositionFilter struct {
	Stream  string // RE2; "" is all
	Blocked *bool
}

// ListPositions tells where a reaction ("*" for all) stands on its streams.
func (c *Client) ListPositions(ctx context.Context, reaction string, f PositionFilter) iter.Seq2[wire.Position, error] {
	return pages(func(p Page) (wire.List[wire.Position], error) { return c.ListPositionsPage(ctx, reaction, f, p) })
}

// ListPositionsPage tells a page of where a reaction stands on its streams.
func (c *Client) ListPositionsPage(ctx context.Context, reaction string, f PositionFilter, p Page, o ...Option) (wire.List[wire.Position], error) {
	r := list(p, "reactions", reaction, "streams").set("stream", f.Stream)
	if f.Blocked != nil {
		r.set("blocked", strconv.FormatBool(*f.Blocked))
	}
	return listed[wire.Position](ctx, c, r, o)
}

// ClaimLeases claims streams of a reaction by hand.
func (c *Client) ClaimLeases(ctx context.Context, reaction string, in wire.TakeLeases, o ...Option) (wire.Leases, error) {
	return do[wire.Leases](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "claim"), ownKey(o))
}

// AckLeases acknowledges what was handled, with the token of each lease. A lease that was lost, and a version that a
// lease did not show, are told in the results, and are no error.
func (c *Client) AckLeases(ctx context.Context, reaction string, in wire.Acks, o ...Option) (wire.Acked, error) {
	return do[wire.Acked](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "ack"), o)
}

// FailLease says that an event could not be handled, with the token of its lease.
func (c *Client) FailLease(ctx context.Context, reaction string, in wire.FailLease, o ...Option) (wire.FailedLease, error) {
	return do[wire.FailedLease](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "fail"), o)
}

// RenewLease extends a lease, with its token.
func (c *Client) RenewLease(ctx context.Context, reaction string, in wire.RenewLease, o ...Option) (wire.Renewed, error) {
	return do[wire.Renewed](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "renew"), o)
}

// UnblockReactions lets streams of a reaction ("*" for all) go on from where they
// were blocked.
func (c *Client) UnblockReactions(ctx context.Context, reaction string, in wire.Repair, o ...Option) (wire.Repaired, error) {
	return c.repair(ctx, "unblock", reaction, in, o)
}

// ResetReactions has a reaction ("*" for all but after-effects and webhooks) begin its
// streams anew.
func (c *Client) ResetReactions(ctx context.Context, reaction string, in wire.Repair, o ...Option) (wire.Repaired, error) {
	return c.repair(ctx, "reset", reaction, in, o)
}

// SkipReactions passes over the event that streams of a reaction ("*" for all) are
// blocked at.
func (c *Client) SkipReactions(ctx context.Context, reaction string, in wire.Repair, o ...Option) (wire.Repaired, error) {
	return c.repair(ctx, "skip", reaction, in, o)
}

func (c *Client) repair(ctx context.Context, how, reaction string, in wire.Repair, o []Option) (wire.Repaired, error) {
	return do[wire.Repaired](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, how), o)
}
