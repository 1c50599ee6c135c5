package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// benchRows is the number of rows that each caller has for itself.
const benchRows = 50

type benchInvoice struct {
	Cents int `json:"cents"`
}

const benchConfig = `
workflow: bench
owning_module: bench
status_types: [open, closed, gone]
initial_status: open
steps:
  - {step_id: 10, step_key: close, status: open, successful_state: {admin: closed}}
  - {step_id: 20, step_key: reopen, status: closed, successful_state: {admin: open}}
  - {step_id: 30, step_key: remove, status: closed, successful_state: {admin: gone}}
`

// benchUnits are the measured calls. A caller never makes two of them at once, and has rows of its own.
type benchUnits struct {
	engine    *holdfast.Engine
	client    *client.Client
	invoices  *lifecycle.Lifecycle[benchInvoice]
	threeStep *run.Definition
	runs      atomic.Int64
	callers   []benchCaller
}

// benchCaller is where a caller is with its rows.
type benchCaller struct {
	row      int // the last used row
	created  [benchRows]bool
	closed   [benchRows]bool
	head     [benchRows]stream.Version
	httpHead [benchRows]int64
}

// next returns the next row.
func (c *benchCaller) next() int {
	c.row = (c.row + 1) % benchRows
	return c.row
}

// measure opens the database, measures every workload with every number of callers, and closes it.
func (c *benchCommand) measure(ctx context.Context, p *program, db holdfast.Database) (r benchReport, err error) {
	u := &benchUnits{invoices: lifecycle.MustParse[benchInvoice]([]byte(benchConfig)), callers: make([]benchCaller, slices.Max(c.Callers))}
	for i := range u.callers {
		for row := range benchRows {
			u.callers[i].head[row], u.callers[i].httpHead[row] = stream.None, int64(stream.None)
		}
	}
	step := func(context.Context, benchInvoice) (json.RawMessage, error) {
		return json.RawMessage(`{"ok":true}`), nil
	}
	u.threeStep = run.Define("bench", "1", run.Task("s1", step, run.Idempotent()), run.Task("s2", step, run.Idempotent()), run.Task("s3", step, run.Idempotent()))
	inProcess, api := httpapi.New(httpapi.Options{Log: p.log, NoKeys: true}), httpapi.New(httpapi.Options{Log: p.log})
	if u.engine, err = holdfast.Open(ctx, db, holdfast.Config{Log: p.log}, u.invoices, u.threeStep, inProcess, api); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, u.engine.Close()) }()
	status, err := u.engine.Status(ctx)
	if err != nil {
		return r, err
	}
	r.Database = status.Database
	stop, err := u.serve(ctx, p, inProcess, api)
	if err != nil {
		return r, err
	}
	defer stop()
	r.Results, err = c.measureAll(ctx, u)
	return r, err
}

func (c *benchCommand) measureAll(ctx context.Context, u *benchUnits) (all []benchResult, err error) {
	workloads := []struct {
		name string
		unit func(context.Context, int) error
	}{{"transition", u.transition}, {"append", u.append}, {"run of 3 steps", u.run}, {"append over HTTP", u.appendOverHTTP}}
	each := c.Duration / time.Duration(len(workloads)*len(c.Callers))
	for _, w := range workloads {
		for _, callers := range c.Callers {
			if w.name == "transition" {
				if err := u.create(ctx, callers); err != nil {
					return all, fmt.Errorf("create: %w", err)
				}
			}
			if _, err := benchFor(ctx, each/10, callers, w.unit); err != nil { // warms up
				return all, fmt.Errorf("%s: %w", w.name, err)
			}
			r, err := benchFor(ctx, each-each/10, callers, w.unit)
			if err != nil {
				return all, fmt.Errorf("%s: %w", w.name, err)
			}
			r.Workload = w.name
			all = append(all, r)
		}
	}
	return all, nil
}

// benchFor lets callers call for a while, each again as soon as it has a response.
func benchFor(ctx context.Context, long time.Duration, callers int, unit func(context.Context, int) error) (benchResult, error) {
	latencies, errs := make([][]time.Duration, callers), make([]error, callers)
	var group sync.WaitGroup
	start := clock.Now()
	for i := range callers {
		group.Go(func() {
			for begun := start; begun.Sub(start) < long; {
				if errs[i] = unit(ctx, i); errs[i] != nil {
					return
				}
				now := clock.Now()
				latencies[i] = append(latencies[i], now.Sub(begun))
				begun = now
			}
		})
	}
	group.Wait()
	took, all := clock.Since(start), slices.Concat(latencies...)
	slices.Sort(all)
	return benchResult{Callers: callers, Calls: len(all), PerSecond: rounded(float64(len(all)) / took.Seconds()),
		P50Ms: percentile(all, 50), P95Ms: percentile(all, 95), P99Ms: percentile(all, 99)}, errors.Join(errs...)
}

// percentile returns a percentile of sorted durations, in milliseconds.
func percentile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := (len(sorted)*percent + 99) / 100 // the smallest value that so many percent do not exceed
	return rounded(float64(sorted[max(at, 1)-1]) / float64(time.Millisecond))
}

func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// serve runs the engine in the background, and its API on loopback with an API key, as "holdfast serve" does.
func (u *benchUnits) serve(ctx context.Context, p *program, inProcess, api *httpapi.API) (stop func(), err error) {
	first, err := client.New("http://in-process", client.Options{HTTP: &http.Client{Transport: inMemory{inProcess}}})
	if err != nil {
		return nil, err
	}
	key, err := first.CreateKey(ctx, wire.NewKey{Name: "bench", Role: "operate"})
	if err != nil {
		return nil, err
	}
	ln, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if u.client, err = client.New("http://"+ln.Addr().String(), client.Options{APIKey: key.Secret}); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	stopEngine := background(ctx, u.engine, func() {})
	serving, cancel := context.WithCancel(ctx)
	var served sync.WaitGroup
	served.Go(func() {
		if err := api.Serve(serving, ln, time.Second); err != nil {
			p.log.Warn("serving failed", "error", err)
		}
	})
	return func() {
		u.client.Close()
		cancel()
		served.Wait()
		inProcess.Stop()
		stopEngine()
	}, nil
}

func benchRow(caller, row int) string { return fmt.Sprintf("bench-%d-%d", caller, row) }

// create creates the entities of the first callers, unless they exist.
func (u *benchUnits) create(ctx context.Context, callers int) error {
	errs := make([]error, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for row := 0; row < benchRows && errs[i] == nil; row++ {
				if !u.callers[i].created[row] {
					_, errs[i] = u.invoices.Create(ctx, u.engine, benchRow(i, row), benchInvoice{1200})
					u.callers[i].created[row] = true
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (u *benchUnits) transition(ctx context.Context, caller int) error {
	c := &u.callers[caller]
	row := c.next()
	step := "close"
	if c.closed[row] {
		step = "reopen"
	}
	_, err := u.invoices.Fire(ctx, u.engine, benchRow(caller, row), step, "admin")
	c.closed[row] = c.closed[row] != (err == nil)
	return err
}

var benchData = []byte(`{"cents":1200}`)

func (u *benchUnits) append(ctx context.Context, caller int) (err error) {
	c := &u.callers[caller]
	row := c.next()
	c.head[row], err = stream.Append(ctx, u.engine, benchRow(caller, row), c.head[row], stream.Event{Name: "paid", Data: benchData})
	return err
}

func (u *benchUnits) run(ctx context.Context, _ int) error {
	r, _, err := u.threeStep.Start(ctx, u.engine, benchInvoice{1200}, run.Key(fmt.Sprint(u.runs.Add(1))))
	if err != nil {
		return err
	}
	if r, err = run.Await(ctx, u.engine, r.ID); err == nil && r.Status != run.Completed {
		err = fmt.Errorf("run %s is %s: %s", r.ID, r.Status, r.Error)
	}
	return err
}

func (u *benchUnits) appendOverHTTP(ctx context.Context, caller int) error {
	c := &u.callers[caller]
	row := c.next()
	done, err := u.client.AppendEvents(ctx, "http-"+benchRow(caller, row), wire.Append{ExpectedVersion: &c.httpHead[row], Events: []wire.NewEvent{{Name: "paid", Data: benchData}}})
	if err == nil {
		c.httpHead[row] = done.LastVersion
	}
	return err
}
