package batchengine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Remote gives out items of batches whose handlers are workers.
type Remote struct {
	remote.NoEffects

	Engine Engine
}

// Owns says whether a task is an item of a batch.
func (r *Remote) Owns(id string) bool { return IsTask(id) }

// Offer has the items of batches that the claim's handlers do.
func (r *Remote) Offer(_ context.Context, c remote.Claim) (remote.Offer, error) {
	o := remote.Offer{Leased: wake.HeldItem, Due: wake.WorkKinds(wake.Batch, c.Handlers...)}
	for _, name := range c.Handlers {
		o.Topics = append(o.Topics, Topic(name))
	}
	o.Take = func(ctx context.Context, d store.Doer, limit int) ([]remote.Task, error) {
		taken, err := Take(ctx, d, Ask{Handlers: c.Handlers, Kind: "worker", Holder: c.Worker, Elsewhere: true, Limit: limit, Lease: c.Lease, Busy: c.Busy})
		all := make([]remote.Task, len(taken))
		for i, t := range taken {
			all[i] = t.Remote()
		}
		return all, err
	}
	return o, nil
}

// Remote is the item as another program is told of it.
func (t Taken) Remote() remote.Task {
	x := remote.Task{ID: t.TaskID(), Epoch: t.Epoch, Handler: t.Handler, Kind: "batchItem", Input: t.Input, Attempt: t.Attempt(), Until: t.Until,
		Operation: t.Operation(), Batch: t.Batch, Item: t.Key}
	if t.Artifacts {
		x.ArtifactPrefix = Prefix(t.Workspace, t.Batch, t.Key)
	}
	return x
}

// Complete ends an item that is done.
func (r *Remote) Complete(ctx context.Context, h remote.Lease, done remote.Result) (remote.Ended, error) {
	if err := done.Stateless(); err != nil {
		return remote.Ended{}, err
	}
	t, err := TaskOf(ctx, r.Engine, h.ID, h.Epoch)
	if err != nil {
		return remote.Ended{}, err
	}
	e, err := Settle(ctx, r.Engine, t, done.Output)
	return remote.Ended{Status: e.State}, err
}

// Fail has an item tried again later, or fails it.
func (r *Remote) Fail(ctx context.Context, h remote.Lease, why remote.Failure) (remote.Ended, error) {
	t, err := TaskOf(ctx, r.Engine, h.ID, h.Epoch)
	if err != nil {
		return remote.Ended{}, err
	}
	e, err := Fail(ctx, r.Engine, t, why.Message, Pause(t.Failures+1), why.Final || why.Invalid)
	return remote.Ended{Status: e.State}, err
}

// Renew extends the lease of an item, and tells whether its batch is to be cancelled.
func (r *Remote) Renew(ctx context.Context, h remote.Lease, lease time.Duration) (remote.Renewed, error) {
	t, err := TaskOf(ctx, r.Engine, h.ID, h.Epoch)
	if err != nil {
		return remote.Renewed{}, err
	}
	x, err := Renew(ctx, r.Engine, t, lease)
	return remote.Renewed{Until: x.Until, CancelRequested: x.CancelRequested}, err
}

// Prefix is where an item may put artifacts. It consists of letters that names of files and
// of objects may have, whatever the item is called, and ends with a slash.
func Prefix(workspace, batch, key string) string {
	return strings.Join([]string{plain(workspace), plain(batch), plain(key)}, "/") + "/"
}

// plain makes a name one that a folder may have, also where upper and lower case are not
// told apart. Two names stay two.
func plain(name string) string {
	const longest = 200
	escaped := url.PathEscape(name)
	if escaped == strings.ToLower(escaped) && len(escaped) <= longest && !strings.HasPrefix(escaped, ".") && !strings.ContainsAny(escaped, "%=:*") {
		return escaped
	}
	if text := fmt.Sprintf("=%x", name); len(text) <= longest {
		return text
	}
	return fmt.Sprintf("=%x-", sha256.Sum256([]byte(name)))
}
