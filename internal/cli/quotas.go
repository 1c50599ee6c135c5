package cli

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/httpapi"
)

// quotaForm describes the syntax of a quota in errors.
const quotaForm = "write WORKSPACE:requests=1000,connections=100,work=50000,storage=10GiB,definitions=500, or some of these options"

// noQuotas are those of an operator who uses the database without a server.
var noQuotas = map[string]httpapi.Quota{"*": {Requests: -1, Connections: -1, Work: -1, Storage: -1, Definitions: -1}}

// quotas parses the quotas of workspaces.
func quotas(texts []string) (map[string]httpapi.Quota, error) {
	all := make(map[string]httpapi.Quota)
	err := namedOptions{"--quota", "workspace", quotaForm}.parse(texts, func(name string, o options) (err error) {
		var q httpapi.Quota
		for option, limit := range map[string]*int64{"requests": &q.Requests, "connections": &q.Connections, "work": &q.Work, "storage": &q.Storage, "definitions": &q.Definitions} {
			if o[option] == "" {
				continue
			}
			if *limit, err = quotaLimit(o[option], option == "storage"); err != nil {
				return misuse("--quota: %s of workspace %q must be a positive number, or none for no limit, got %q", option, name, o[option])
			}
		}
		all[name] = q
		return nil
	}, "requests", "connections", "work", "storage", "definitions")
	return all, err
}

// quotaLimit parses a limit. A size may have a unit.
func quotaLimit(text string, size bool) (int64, error) {
	if unlimited(text) {
		return -1, nil
	}
	unit := int64(1)
	if size {
		for i, name := range []string{"KiB", "MiB", "GiB", "TiB"} {
			if number, ok := strings.CutSuffix(text, name); ok {
				text, unit = number, 1<<(10*(i+1))
			}
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n <= 0 || n > math.MaxInt64/unit) {
		err = strconv.ErrRange
	}
	return n * unit, err
}

type quotasCommand struct{ pageFlags }

func (c *quotasCommand) Run(ctx context.Context, d *connection) error {
	l, err := d.ListQuotasPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"QUOTA", "USED", "LIMIT", "REFUSED"}}
	for _, q := range l.Items {
		used, limit := "", "none"
		if q.Used != nil {
			used = number64(*q.Used)
		}
		if q.Limit != nil {
			limit = number64(*q.Limit)
		}
		t.add(q.Name, used, limit, number64(q.Refused))
	}
	return d.showList(t, l.Next, err)
}
