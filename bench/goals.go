package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// goal is what a measurement should show of Holdfast: at least so much of another system's
// throughput, or at most so much of its latency. A goal without another system is a figure in the
// unit of its measure. A goal is printed, never asserted: a busy machine is not a defect.
type goal struct {
	store, workload string
	clients         int
	measure         measure
	of              string  // the other system, or "" for none
	bound           float64 // the ratio, or without another system the figure
}

type measure string

const (
	rate      measure = "rate"
	p50       measure = "p50"        // of the latencies
	p50Millis measure = "p50 ms"     // not compared
	seconds   measure = "s"          // not compared
	growth    measure = "growth"     // how many times as long it takes with ten times the rows
	linear            = 12.5         // the growth that still counts as linear: about 10 to the power of 1.1
	checkOf           = "runs-check" // the workload of -check
)

// atMost says that less is better.
func (m measure) atMost() bool { return m != rate }

var goals = []goal{
	{"postgres", "run-3", 1, p50, peerDBOS, 0.6},
	{"postgres", "run-3", 16, rate, peerDBOS, 2},
	{"postgres", "run-3", 16, rate, sqlOne, 0.75},
	{"postgres", "run-3", 64, rate, peerDBOS, 4},
	{"sqlite", "run-3", 16, rate, sqlBest, 0.7},
	{"sqlite", "run-3", 16, rate, peerDBOS, 4},
	{"postgres", "append-http", 16, rate, sqlOne, 0.35},
	{"postgres", "append-http-key", 16, rate, sqlOne, 0.25},
	{"postgres", "batch-items", 1, rate, sqlBest, 0.8},
	{"postgres", "batch-items", 16, rate, sqlBest, 0.8},
	{"postgres", "batch-items", 64, rate, sqlBest, 0.8},
	{"postgres", "transition", 1, rate, sqlOne, 0.8},
	{"postgres", "transition", 16, rate, sqlOne, 0.8},
	{"postgres", "transition", 64, rate, sqlOne, 2.4},
	{"sqlite", "transition", 16, rate, sqlBest, 0.7},
	{"sqlite", "transition", 64, rate, sqlBest, 0.7},
	{"postgres", "append", 16, rate, oursLocked, 5},
	{"postgres", "create", 1, rate, sqlOne, 0.8},
	{"postgres", "hot-row", 16, rate, sqlSwap, 15},
	{"postgres", "wake-up", 1, p50Millis, "", 25},
	{"postgres", checkOf, 1, seconds, "", 120},
	{"postgres", checkOf, 1, growth, "", linear},
	{"sqlite", checkOf, 1, seconds, "", 120},
	{"sqlite", checkOf, 1, growth, "", linear},
}

// judgement is a goal and what was measured.
type judgement struct {
	Goal     string  `json:"goal"` // store/workload/clients
	Ours     string  `json:"ours"`
	Of       string  `json:"comparedWith,omitempty"`
	Measure  measure `json:"measure"`
	Got      float64 `json:"got"`
	Low      float64 `json:"low,omitempty"` // the 95 % interval of the median
	High     float64 `json:"high,omitempty"`
	Bound    float64 `json:"bound"`
	Met      bool    `json:"met"`
	Unsure   bool    `json:"unsure,omitempty"` // the interval has the bound in it
	Measured bool    `json:"measured"`
}

// judge compares every goal with the results.
func judge(all []result) []judgement {
	var found []judgement
	for _, g := range goals {
		found = append(found, g.judge(all))
	}
	return found
}

func (g goal) judge(all []result) judgement {
	j := judgement{Goal: cellName(g.store, g.workload, g.clients), Of: g.of, Measure: g.measure, Bound: g.bound}
	mine, ok := find(all, g, ours)
	if !ok {
		return j
	}
	var ratios []float64
	switch g.measure {
	case rate, p50:
		theirs, ok := find(all, g, g.of)
		if !ok {
			return j
		}
		ratios = paired(mine, theirs, g.measure)
	case p50Millis:
		for _, s := range mine.samples {
			ratios = append(ratios, s.p50())
		}
	case seconds:
		ratios = []float64{mine.Seconds}
	case growth:
		ratios = []float64{mine.Growth}
	}
	if len(ratios) == 0 {
		return j
	}
	j.Measured, j.Ours, j.Got = true, mine.figure(g.measure), median(ratios)
	j.Low, j.High = interval(ratios)
	j.Met = g.met(j.Got)
	j.Unsure = len(ratios) > 1 && g.met(j.Low) != g.met(j.High)
	return j
}

func (g goal) met(got float64) bool {
	if g.measure.atMost() {
		return got <= g.bound
	}
	return got >= g.bound
}

func find(all []result, g goal, system string) (result, bool) {
	i := slices.IndexFunc(all, func(r result) bool {
		return r.System == system && r.Store == g.store && r.Workload == g.workload && r.Clients == g.clients
	})
	if i < 0 {
		return result{}, false
	}
	return all[i], true
}

// paired returns the ratio of two systems in each round that both have: other activity of the
// machine in that round has affected both.
func paired(a, b result, m measure) (ratios []float64) {
	of := sample.rate
	if m == p50 {
		of = sample.p50
	}
	for _, x := range a.samples {
		i := slices.IndexFunc(b.samples, func(y sample) bool { return y.round == x.round })
		if i >= 0 && of(b.samples[i]) > 0 {
			ratios = append(ratios, of(x)/of(b.samples[i]))
		}
	}
	return ratios
}

// interval returns the 95 % interval of the median, which assumes nothing about the distribution:
// it reaches from one of the sorted values to another, so that the median lies outside with a
// probability of at most 5 %. Fewer than six values have no such interval; it then covers all.
func interval(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0, 0
	}
	cut, tail, chance := 0, 0.0, math.Pow(0.5, float64(n)) // chance of exactly cut values below the median
	for cut < n/2 {
		tail += chance
		if 2*tail > 0.05 {
			break
		}
		chance *= float64(n-cut) / float64(cut+1)
		cut++
	}
	cut = max(cut-1, 0)
	return sorted[cut], sorted[n-1-cut]
}

// figure returns the result as text.
func (r result) figure(m measure) string {
	switch m {
	case p50, p50Millis:
		return fmt.Sprintf("p50 %.2f ms", r.P50Ms)
	case seconds, growth:
		return fmt.Sprintf("%d in %.1f s", r.Rows, r.Seconds)
	}
	return fmt.Sprintf("%.0f/s", r.UnitsPerSecond)
}

// goalTable prints a line for each goal.
func goalTable(w io.Writer, all []judgement) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nworkload\tours\tcompared with\tratio [95 % interval]\tgoal\tmet")
	for _, j := range all {
		fmt.Fprintln(t, strings.Join(j.cells(), "\t"))
	}
	_ = t.Flush() // to a terminal or a pipe
	fmt.Fprintln(w, "\n? the interval includes the goal: measure again, longer or on a quieter machine")
}

func (j judgement) cells() []string {
	if !j.Measured {
		return []string{j.Goal, "-", cmp.Or(j.Of, "-"), "-", j.goal(), "not measured"}
	}
	met := "no"
	if j.Met {
		met = "yes"
	}
	if j.Unsure {
		met += " ?"
	}
	got := fmt.Sprintf("%.2f", j.Got)
	if j.Low != j.High {
		got += fmt.Sprintf(" [%.2f to %.2f]", j.Low, j.High)
	}
	return []string{j.Goal, j.Ours, cmp.Or(j.Of, "-"), got, j.goal(), met}
}

func (j judgement) goal() string {
	sign, unit := "≥", ""
	if j.Measure.atMost() {
		sign = "≤"
	}
	switch j.Measure {
	case p50:
		unit = " of its p50"
	case p50Millis:
		unit = " ms"
	case seconds:
		unit = " s"
	case growth:
		unit = " times as long for 10 times the runs"
	}
	return fmt.Sprintf("%s %g%s", sign, j.Bound, unit)
}
