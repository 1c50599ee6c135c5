package httpapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

// Quota limits what one workspace may use. 0 is the limit of the workspace "*", and there the default; a negative limit means no limit. A
// request over a limit is refused with [fault.QuotaExceeded] and changes nothing. Requests that end work or free room are never refused, nor are
// repetitions of requests that were accepted.
type Quota struct {
	// Requests per second, on each node; in a short burst twice as many. The default is 10,000.
	Requests int64
	// Connections is how many event streams and waiting requests may be open at the same time, on each node. The default is 1,000.
	Connections int64
	// Work is how many operations, runs and items of batches may be open. Runs that have failed do not count. The default is 1,000,000.
	Work int64
	// Storage is how many bytes may be stored: documents, and 100 bytes for each row. It is counted about every 30 seconds. The default is no limit.
	Storage int64
	// Definitions is how many definitions, lifecycles, reactions, handlers, webhooks, secrets and API keys may exist together. The default is 10,000.
	Definitions int64
}

// limits returns the quotas in the form of the package quota.
func (o Options) limits() (map[string]quota.Limits, error) {
	all := make(map[string]quota.Limits, len(o.Quotas))
	for name, q := range o.Quotas {
		if name != quota.All {
			if err := store.CheckWorkspace(name); err != nil {
				return nil, err
			}
		}
		if q.Requests > math.MaxInt32 {
			return nil, fault.New(fault.Validation, "the quota of requests of workspace %q must be at most %d, got %d", name, math.MaxInt32, q.Requests)
		}
		all[name] = quota.Limits{quota.Requests: q.Requests, quota.Connections: q.Connections, quota.Work: q.Work, quota.Storage: q.Storage, quota.Definitions: q.Definitions}
	}
	return all, nil
}

func (a *API) quotaRoutes() {
	add(a, route{Method: http.MethodGet, Path: "quotas", ID: "listQuotas", Tag: "visibility", Summary: "List the quotas of the workspace, and what it uses of them.", Roles: readers,
		More: "Each node counts requests and connections of its own: the response has those of the node that responds."}, listQuotas)
}

func listQuotas(c *call, in *paged) (wire.List[wire.Quota], error) {
	return list(c, *in, func(ctx context.Context, after string, limit int) ([]quota.Use, error) {
		all := c.api.quotas.Uses(ctx)
		if after != "" {
			all = all[slices.IndexFunc(all, func(u quota.Use) bool { return u.Kind.String() == after })+1:]
		}
		return all[:min(limit, len(all))], nil
	}, func(u quota.Use) wire.Quota {
		w := wire.Quota{Name: u.Kind.String(), PerNode: u.Kind.PerNode(), Refused: u.Refused, Used: known(u.Used)}
		if u.Limit > 0 {
			w.Limit = &u.Limit
		}
		return w
	}, func(u quota.Use) string { return u.Kind.String() })
}

// counted is the input of a request that adds more or less than one.
type counted interface{ units(*call) (int64, error) }

// repeater is the input of a request that may repeat or replace something, and then adds nothing.
type repeater interface{ repeats(*call) (bool, error) }

// admit takes what the request adds of the quotas of its workspace. It reads, so it must be called outside of the transaction of the request.
func (c *call) admit() error {
	if len(c.route.Adds) == 0 {
		return nil
	}
	units := int64(1)
	if c.route.Units != nil {
		var err error
		if units, err = c.route.Units(c); err != nil || units == 0 {
			return err
		}
	}
	for _, k := range c.route.Adds {
		n := units
		if k == quota.Storage {
			n = int64(len(c.body)) + rowSize
		}
		t, refused := c.api.quotas.Take(c.ctx(), k, n)
		if refused == nil {
			c.taken = append(c.taken, t)
			continue
		}
		repeats, err := c.repeats()
		if err == nil && !repeats {
			err = c.overQuota(refused)
		}
		return err
	}
	return nil
}

// endQuotas ends what the request took of the quotas, when it was written or refused. It may be called again.
func (c *call) endQuotas(done bool) {
	for _, t := range c.taken {
		t.End(done)
	}
	if c.taken = nil; done && c.route != nil && c.route.Frees {
		c.api.quotas.Freed(c.key.Workspace)
	}
}

// overQuota logs a refusal, if few were logged lately, and returns it.
func (c *call) overQuota(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if ok && f.Code == fault.QuotaExceeded && c.api.quotaLogs.Allow() {
		c.api.log.Warn("quota exceeded", "workspace", c.key.Workspace, "quota", f.Fields["quota"], "limit", f.Fields["limit"], "path", watchOf(c.ctx()).Path, "request", requestID(c.ctx()))
	}
	return err
}

// rowSize is what a row takes besides its document, as in sum_storage.sql.
const rowSize = 100

// repeats reports whether the request adds nothing. A client that got no response must learn what became of its request, although the quota
// has been reached since.
func (c *call) repeats() (bool, error) {
	if c.flight != nil {
		q, err := idempotency.Get(c.ctx(), c.api.engine, c.flight.Key)
		if err != nil || q.State == idempotency.Done {
			return true, err
		}
		if q.State == idempotency.Operation { // that of a released operation begins another one
			l, err := c.lifecycle(c.values["name"])
			if err != nil {
				return false, err
			}
			f, err := l.OutcomeOf(c.ctx(), c.api.engine, c.values["id"], q.Operation)
			return f.Outcome != "released", err
		}
	}
	if c.route.Repeats == nil {
		return false, nil
	}
	return c.route.Repeats(c)
}

// exists reports whether an object was found. Another error than not found is returned.
func exists(err error) (bool, error) {
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}
