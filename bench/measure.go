package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// result is one line of results.json.
type result struct {
	Workload            string  `json:"workload"`
	Store               string  `json:"store"`
	Clients             int     `json:"clients"`
	System              string  `json:"system"`
	UnitsPerSecond      float64 `json:"unitsPerSecond"`
	P50Ms               float64 `json:"p50Ms"`
	P99Ms               float64 `json:"p99Ms"`
	TransactionsPerUnit float64 `json:"transactionsPerUnit"`
	WALBytesPerUnit     float64 `json:"walBytesPerUnit"`
	// CPU of this process and, where the server is on this machine, of the
	// server.
	CPUMicrosPerUnit       float64 `json:"cpuMicrosPerUnit"`
	ServerCPUMicrosPerUnit float64 `json:"serverCpuMicrosPerUnit,omitempty"`
}

// place is a store with the systems that are measured on it, each with tables
// of its own.
type place struct {
	store   string
	systems []named
	// count reads what the store has counted so far for a system. A store that
	// cannot be asked while it works has account instead.
	count func(context.Context) (counters, error)
	// account runs a slice of a system whose transactions and log are measured
	// and whose time is not.
	account func(context.Context, named, func() (int, error)) (counters, int, error)
	// settle is called when the rows of a workload are made.
	settle func(context.Context) error
	close  func()
}

type named struct {
	name string
	system
	// seeder does the same writes fast.
	seeder system
	file   string
}

type counters struct {
	transactions, wal int64
	server            time.Duration
}

func (c counters) minus(o counters) counters {
	return counters{c.transactions - o.transactions, c.wal - o.wal, c.server - o.server}
}

var clientCounts = []int{1, 16, 64}

func measurePlace(ctx context.Context, c config, open func(context.Context, config) (*place, error)) (all []result, err error) {
	p, err := open(ctx, c)
	if err != nil || p == nil {
		return nil, err
	}
	defer p.close()
	p.systems = slices.DeleteFunc(p.systems, func(s named) bool { return !c.systems.MatchString(s.name) })
	for _, w := range workloads {
		if !wanted(c, p.store, w.name) {
			continue
		}
		found, err := measureWorkload(ctx, c, p, w)
		all = append(all, found...)
		if err != nil {
			return all, fmt.Errorf("%s/%s: %w", p.store, w.name, err)
		}
	}
	return all, nil
}

func wanted(c config, store, workload string) bool {
	return slices.ContainsFunc(clientCounts, func(n int) bool { return c.run.MatchString(cellName(store, workload, n)) })
}

func cellName(store, workload string, clients int) string {
	return fmt.Sprintf("%s/%s/%d", store, workload, clients)
}

func measureWorkload(ctx context.Context, c config, p *place, w workload) (all []result, err error) {
	units := make([]unit, len(p.systems))
	for i, s := range p.systems {
		if w.seed != nil {
			if err := w.seed(ctx, s.seeder); err != nil {
				return nil, fmt.Errorf("seed %s: %w", s.name, err)
			}
		}
		units[i] = w.start(s.system)
	}
	if p.settle != nil {
		if err := p.settle(ctx); err != nil {
			return nil, err
		}
	}
	for _, clients := range clientCounts {
		if !c.run.MatchString(cellName(p.store, w.name, clients)) {
			continue
		}
		cell := cell{config: c, place: p, clients: clients, units: units, runs: make([]tally, len(units))}
		if err := cell.measure(ctx); err != nil {
			return all, err
		}
		found := cell.results(w.name)
		table(os.Stdout, found)
		all = append(all, found...)
	}
	return all, nil
}

// cell is one measurement: all systems, one workload, one number of clients.
type cell struct {
	config
	place   *place
	clients int
	units   []unit
	runs    []tally // by system
}

// tally is what one system did in all rounds that count.
type tally struct {
	rates     []float64 // one a round
	latencies []time.Duration
	units     int
	cpu       time.Duration
	counted   counters
	accounted int // units that counted is about
}

func (c *cell) measure(ctx context.Context) error {
	for round := range c.rounds {
		for i := range c.units {
			at := (i + round) % len(c.units)
			if err := c.round(ctx, at, round > 0); err != nil {
				return fmt.Errorf("%s, %d clients: %w", c.place.systems[at].name, c.clients, err)
			}
		}
	}
	if c.place.account == nil {
		return nil
	}
	for i, s := range c.place.systems {
		counted, n, err := c.place.account(ctx, s, func() (int, error) {
			done, err := c.work(ctx, c.units[i], min(c.slice, 300*time.Millisecond))
			return len(done.latencies), err
		})
		if err != nil {
			return fmt.Errorf("%s, %d clients: %w", s.name, c.clients, err)
		}
		c.runs[i].counted, c.runs[i].accounted = counted, n
	}
	return nil
}

// round is one slice of one system.
func (c *cell) round(ctx context.Context, at int, counts bool) error {
	runtime.GC() // so that nobody pays for another's garbage
	before, err := c.count(ctx)
	if err != nil {
		return err
	}
	cpu := processTime()
	done, err := c.work(ctx, c.units[at], c.slice)
	if err != nil || !counts {
		return err
	}
	cpu = processTime() - cpu
	after, err := c.count(ctx)
	if err != nil {
		return err
	}
	t, n := &c.runs[at], len(done.latencies)
	t.rates = append(t.rates, float64(n)/done.took.Seconds())
	t.latencies = append(t.latencies, done.latencies...)
	t.units += n
	t.cpu += cpu
	spent := after.minus(before)
	t.counted.server += spent.server
	if c.place.account == nil {
		t.counted.transactions += spent.transactions
		t.counted.wal += spent.wal
		t.accounted += n
	}
	return nil
}

func (c *cell) count(ctx context.Context) (counters, error) {
	if c.place.count == nil {
		return counters{}, nil
	}
	return c.place.count(ctx)
}

type slice struct {
	latencies []time.Duration
	took      time.Duration
}

// work lets all clients call for a while, each again as soon as it is answered.
func (c *cell) work(ctx context.Context, u unit, long time.Duration) (slice, error) {
	var group sync.WaitGroup
	latencies, errs := make([][]time.Duration, c.clients), make([]error, c.clients)
	start := time.Now()
	for client := range c.clients {
		group.Go(func() {
			for begun := start; begun.Sub(start) < long; {
				if errs[client] = u(ctx, client, c.clients); errs[client] != nil {
					return
				}
				now := time.Now()
				latencies[client] = append(latencies[client], now.Sub(begun))
				begun = now
			}
		})
	}
	group.Wait()
	return slice{slices.Concat(latencies...), time.Since(start)}, errors.Join(errs...)
}

func (c *cell) results(workload string) []result {
	var all []result
	for i, s := range c.place.systems {
		t := &c.runs[i]
		slices.Sort(t.latencies)
		all = append(all, result{
			Workload: workload, Store: c.place.store, Clients: c.clients, System: s.name,
			UnitsPerSecond:         round(median(t.rates), 1),
			P50Ms:                  round(millis(quantile(t.latencies, 0.50)), 1000),
			P99Ms:                  round(millis(quantile(t.latencies, 0.99)), 1000),
			TransactionsPerUnit:    round(per(float64(t.counted.transactions), t.accounted), 1000),
			WALBytesPerUnit:        round(per(float64(t.counted.wal), t.accounted), 1),
			CPUMicrosPerUnit:       round(per(float64(t.cpu.Microseconds()), t.units), 10),
			ServerCPUMicrosPerUnit: round(per(float64(t.counted.server.Microseconds()), t.units), 10),
		})
	}
	return all
}

// processTime is the CPU time that this process has used.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
