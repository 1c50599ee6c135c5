package cli

import (
	"context"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type requestsCommand struct {
	Show requestsShow `cmd:"" help:"Show the requests that were made with an idempotency key."`
	List requestsList `cmd:"" help:"List the requests of an operation."`
}

type requestsShow struct {
	targetFlags
	Key string `arg:"" name:"idempotency-key" help:"Idempotency key of the request."`
}

func (c *requestsShow) Run(ctx context.Context, d *connection) error {
	found, err := d.GetRequest(ctx, c.Key, d.raw())
	return d.show(requestTable(found.Requests), err)
}

type requestsList struct {
	pageFlags
	Operation string `setting:"-" required:"" placeholder:"ID" help:"Operation id."`
}

func (c *requestsList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListRequestsPage(ctx, client.RequestFilter{Operation: c.Operation}, c.page(), d.raw())
	return d.showList(requestTable(l.Items), l.Next, err)
}

func requestTable(all []wire.StoredRequest) *table {
	t := &table{heads: []string{"AT", "ROUTE", "STATE", "STATUS", "OPERATION", "RESPONSE"}}
	for _, r := range all {
		response := string(r.Response)
		if r.Withheld {
			response = "(withheld)"
		}
		t.add(at(r.At), r.Route, r.State, number64(int64(r.Status)), r.Operation, response)
	}
	return t
}
