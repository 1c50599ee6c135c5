package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// place is a store with the systems that are measured on it, each with tables
// of its own.
type place struct {
	store   string
	systems []named
	// count reads the counters of the store, before and after each slice. A store
	// that has none has account instead.
	count func(context.Context) (counters, error)
	// account runs a slice of a system to count its transactions and its log. The
	// time of this slice is not measured.
	account func(context.Context, named, func() (int, error)) (counters, int, error)
	// analyze updates the statistics that query plans are based on; nil does nothing.
	analyze func(context.Context) error
	close   func()
}

// analyzed updates the statistics, after rows were made and before they are used.
func (p *place) analyzed(ctx context.Context) error {
	if p.analyze == nil {
		return nil
	}
	return p.analyze(ctx)
}

// finally makes close call f first.
func (p *place) finally(f func()) {
	before := p.close
	p.close = func() { f(); before() }
}

// named is a system, or a peer: another product, in a process of its own.
type named struct {
	name string
	system
	// seeder writes the rows that a workload starts with, to the same tables but faster.
	seeder system
	file   string // of SQLite
	only   string // the one workload that it is for; "" for all
	peer   *product
}

// open prepares a system for a workload.
func (s named) open(ctx context.Context, w workload) (slicer, func(), error) {
	if s.only != "" && s.only != w.name {
		return nil, nil, nil
	}
	if s.peer != nil {
		return s.peer.open(w.name), nil, nil
	}
	return w.open(ctx, s.system)
}

func (s named) seed(ctx context.Context, w workload) error {
	if s.peer != nil || w.seed == nil {
		return nil
	}
	return w.seed(ctx, s.seeder)
}

type counters struct {
	transactions, wal int64
	server            time.Duration
}

func (c counters) plus(o counters) counters {
	return counters{c.transactions + o.transactions, c.wal + o.wal, c.server + o.server}
}

func (c counters) minus(o counters) counters {
	return counters{c.transactions - o.transactions, c.wal - o.wal, c.server - o.server}
}

var clientCounts = []int{1, 16, 64}

func (w workload) clientCounts() []int {
	if w.clients != nil {
		return w.clients
	}
	return clientCounts
}

func measurePlace(ctx context.Context, c config, open func(context.Context, config) (*place, error)) (all []result, err error) {
	p, err := open(ctx, c)
	if err != nil || p == nil {
		return nil, err
	}
	defer p.close()
	p.systems = slices.DeleteFunc(p.systems, func(s named) bool { return !c.systems.MatchString(s.name) })
	for _, w := range workloads {
		if !wanted(c, p.store, w) {
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

func wanted(c config, store string, w workload) bool {
	return slices.ContainsFunc(w.clientCounts(), func(n int) bool { return c.run.MatchString(cellName(store, w.name, n)) })
}

// storeWanted says whether any workload is measured on a store.
func storeWanted(c config, store string) bool {
	return slices.ContainsFunc(workloads, func(w workload) bool { return wanted(c, store, w) })
}

func cellName(store, workload string, clients int) string {
	return fmt.Sprintf("%s/%s/%d", store, workload, clients)
}

func measureWorkload(ctx context.Context, c config, p *place, w workload) (all []result, err error) {
	var systems []named
	var slicers []slicer
	for _, s := range p.systems {
		t, end, err := s.open(ctx, w)
		if err == nil && t != nil {
			err = s.seed(ctx, w)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		if t == nil {
			continue
		}
		if end != nil {
			defer end()
		}
		systems, slicers = append(systems, s), append(slicers, t)
	}
	if len(systems) == 0 {
		return nil, nil
	}
	if err := p.analyzed(ctx); err != nil {
		return nil, err
	}
	for _, clients := range w.clientCounts() {
		if !c.run.MatchString(cellName(p.store, w.name, clients)) {
			continue
		}
		cell := cell{config: c, place: p, workload: w.name, clients: clients, systems: systems, slicers: slicers, runs: make([]tally, len(slicers))}
		if err := cell.measure(ctx); err != nil {
			return all, err
		}
		found := cell.results()
		table(os.Stdout, found)
		all = append(all, found...)
	}
	return all, nil
}

// cell is one measurement: all systems, one workload, one number of clients.
type cell struct {
	config
	place    *place
	workload string
	clients  int
	systems  []named  // that have such a call
	slicers  []slicer // by system
	runs     []tally  // by system
}

// tally is what one system did: the slices in which other programs hardly used the
// machine, and those in which they used more of it (disturbing).
type tally struct {
	quiet, disturbed []sample
	account          counters // of the slice that place.account ran
	accounted        int      // the units of that slice
}

// enough says whether the undisturbed slices suffice by themselves.
func (t *tally) enough(rounds int) bool { return len(t.quiet) >= max(rounds/3, 3) }

// kept returns the slices that count. These are the undisturbed ones if every system
// has enough of them, and otherwise all slices of every system, because a disturbed
// slice cannot be compared with an undisturbed one.
func (c *cell) kept(t *tally) []sample {
	if slices.ContainsFunc(c.runs, func(t tally) bool { return !t.enough(c.rounds) }) {
		return slices.Concat(t.quiet, t.disturbed)
	}
	return t.quiet
}

// measure lets the systems take turns until each has as many undisturbed slices
// as there are to be rounds, or patience ends.
func (c *cell) measure(ctx context.Context) error {
	start := time.Now()
	for round := 0; round < c.rounds || (c.lacks() && time.Since(start) < c.patience); round++ {
		for i := range c.slicers {
			at := (i + round) % len(c.slicers)
			if err := c.runSlice(ctx, at, round); err != nil {
				return fmt.Errorf("%s, %d clients: %w", c.systems[at].name, c.clients, err)
			}
		}
		if round == 0 { // so that plans are based on statistics of the rows of the warm-up
			if err := c.place.analyzed(ctx); err != nil {
				return err
			}
		}
	}
	if err := c.decayed(); err != nil {
		return err
	}
	if c.place.account == nil {
		return nil
	}
	return c.account(ctx)
}

// decayed returns an error if hand-written SQL became slower while it was measured, and Holdfast did not: then
// its statements scan rows that the measurement adds, and the ratio flatters Holdfast. A machine that becomes
// slower affects both. If a peer became slower, this is only printed.
func (c *cell) decayed() error {
	at := slices.IndexFunc(c.systems, func(s named) bool { return s.name == ours })
	if at < 0 {
		return nil
	}
	own, ok := c.runs[at].trend()
	if !ok {
		return nil
	}
	for i, s := range c.systems {
		trend, ok := c.runs[i].trend()
		if !ok || i == at || trend >= 0.6*min(own, 1) {
			continue
		}
		slower := fmt.Sprintf("%s fell to %.0f%% of its rate while it was measured (%s: %.0f%%)", s.name, 100*trend, ours, 100*own)
		if s.peer == nil {
			return fmt.Errorf("%s: check its query plans", slower)
		}
		fmt.Fprintln(os.Stderr, "bench:", cellName(c.place.store, c.workload, c.clients)+":", slower)
	}
	return nil
}

// trend returns the rate of the last third of a system's slices, divided by that of the first third.
func (t *tally) trend() (float64, bool) {
	third := len(t.quiet) / 3
	if third < 2 {
		return 0, false
	}
	rates := make([]float64, len(t.quiet))
	for i, s := range t.quiet {
		rates[i] = s.rate()
	}
	first := median(rates[:third])
	return median(rates[len(rates)-third:]) / first, first > 0
}

func (c *cell) lacks() bool {
	return slices.ContainsFunc(c.runs, func(t tally) bool { return len(t.quiet) < c.rounds-1 })
}

func (c *cell) account(ctx context.Context) (err error) {
	for i, s := range c.systems {
		if s.file == "" {
			continue
		}
		work, err := c.slicers[i](ctx, sliceSize{c.clients, min(c.slice, 300*time.Millisecond)})
		if err != nil {
			return err
		}
		t := &c.runs[i]
		t.account, t.accounted, err = c.place.account(ctx, s, func() (int, error) {
			done, err := work()
			return done.units, err
		})
		if err != nil {
			return fmt.Errorf("%s, %d clients: %w", s.name, c.clients, err)
		}
	}
	return nil
}

// runSlice runs one slice of one system. The first round is not counted.
func (c *cell) runSlice(ctx context.Context, at, round int) error {
	work, err := c.slicers[at](ctx, sliceSize{c.clients, c.slice})
	if err != nil {
		return err
	}
	runtime.GC() // so that no system pays for the garbage of another
	before, err := c.count(ctx)
	if err != nil {
		return err
	}
	machine, cpu := machineTime(), processTime()
	done, err := work()
	if err != nil {
		return err
	}
	machine, cpu = machineTime()-machine, processTime()-cpu
	after, err := c.count(ctx)
	if err == nil && done.check != nil {
		err = done.check()
	}
	if err != nil || round == 0 {
		return err
	}
	done.round, done.counted = round, after.minus(before)
	done.cpu += cpu // a peer has reported that of its own process
	others := machine - done.cpu - done.counted.server
	if t := &c.runs[at]; others > time.Duration(float64(done.took)*float64(runtime.NumCPU())*disturbing) {
		t.disturbed = append(t.disturbed, done)
	} else {
		t.quiet = append(t.quiet, done)
	}
	return nil
}

// disturbing is the part of the machine that other programs may use in an undisturbed slice.
const disturbing = 0.08

func (c *cell) count(ctx context.Context) (counters, error) {
	if c.place.count == nil {
		return counters{}, nil
	}
	return c.place.count(ctx)
}

// sample is one slice.
type sample struct {
	round     int
	units     int
	took      time.Duration
	latencies []time.Duration // of the units, if they are measured one by one
	cpu       time.Duration
	counted   counters
	check     func() error // verifies the work, after the measurement; may be nil
}

func (s sample) rate() float64 { return float64(s.units) / s.took.Seconds() }

// p50 returns the median latency in ms, or 0.
func (s sample) p50() float64 {
	return millis(quantile(slices.Sorted(slices.Values(s.latencies)), 0.50))
}

// callers lets all clients call for a while, each again as soon as it has a response.
func callers(u unit) slicer {
	return func(ctx context.Context, t sliceSize) (slice, error) {
		return func() (sample, error) { return callFor(ctx, u, t) }, nil
	}
}

func callFor(ctx context.Context, u unit, t sliceSize) (sample, error) {
	var group sync.WaitGroup
	latencies, errs := make([][]time.Duration, t.clients), make([]error, t.clients)
	start := time.Now()
	for client := range t.clients {
		group.Go(func() {
			for begun := start; begun.Sub(start) < t.long; {
				if errs[client] = u(ctx, client, t.clients); errs[client] != nil {
					return
				}
				now := time.Now()
				latencies[client] = append(latencies[client], now.Sub(begun))
				begun = now
			}
		})
	}
	group.Wait()
	all := slices.Concat(latencies...)
	return sample{latencies: all, units: len(all), took: time.Since(start)}, errors.Join(errs...)
}

func (c *cell) results() []result {
	var all []result
	for i, s := range c.systems {
		kept := c.kept(&c.runs[i])
		r := c.runs[i].result(kept)
		r.Workload, r.Store, r.Clients, r.System, r.samples = c.workload, c.place.store, c.clients, s.name, kept
		if s.peer != nil {
			r.Version = s.peer.hello.Version
		}
		all = append(all, r)
	}
	return all
}

func (t *tally) result(kept []sample) result {
	var rates []float64
	var latencies []time.Duration
	var cpu time.Duration
	var sum counters
	units := 0
	for _, s := range kept {
		rates = append(rates, s.rate())
		latencies = append(latencies, s.latencies...)
		units += s.units
		cpu += s.cpu
		sum = sum.plus(s.counted)
	}
	slices.Sort(latencies)
	server, accounted := sum.server, units
	if t.accounted > 0 {
		sum, accounted = t.account, t.accounted
	}
	return result{
		UnitsPerSecond:         round(median(rates), 1),
		P50Ms:                  round(millis(quantile(latencies, 0.50)), 1000),
		P99Ms:                  round(millis(quantile(latencies, 0.99)), 1000),
		TransactionsPerUnit:    round(per(float64(sum.transactions), accounted), 1000),
		WALBytesPerUnit:        round(per(float64(sum.wal), accounted), 1),
		CPUMicrosPerUnit:       round(per(float64(cpu.Microseconds()), units), 10),
		ServerCPUMicrosPerUnit: round(per(float64(server.Microseconds()), units), 10),
		Slices:                 len(kept), Quiet: len(t.quiet),
	}
}

// machineTime returns the CPU time that all programs of this machine have used, or 0 if it
// is unknown.
func machineTime() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var busy time.Duration
	for i, field := range strings.Fields(line) {
		// cpu user nice system idle iowait irq softirq steal, in hundredths
		if n, err := strconv.ParseInt(field, 10, 64); err == nil && i <= 8 && i != 4 && i != 5 {
			busy += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return busy
}

// processTime is the CPU time that this process has used.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
