package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

// required is what the design promises of the engine: at least so much of
// another system's throughput.
var required = []struct {
	store, workload string
	clients         int
	of              string
	least           float64
}{
	{"postgres", "transition", 1, sqlOne, 0.8},
	{"postgres", "transition", 16, sqlOne, 0.8},
	{"postgres", "transition", 64, sqlOne, 1.5},
	{"postgres", "append", 16, oursLocked, 5},
	{"sqlite", "transition", 16, sqlBest, 0.7},
	{"sqlite", "transition", 64, sqlBest, 0.7},
	{"postgres", "batch-items", 1, sqlOne, 0.5},
	{"postgres", "batch-items", 16, sqlOne, 0.5},
	{"postgres", "batch-items", 64, sqlOne, 0.5},
	{"sqlite", "batch-items", 1, sqlOne, 0.5},
	{"sqlite", "batch-items", 16, sqlOne, 0.5},
	{"sqlite", "batch-items", 64, sqlOne, 0.5},
	{"postgres", "run-3", 16, sqlOne, 0.75},
	{"sqlite", "run-3", 16, sqlBest, 0.7},
}

// table prints one measurement, with the ratios to the systems by hand.
func table(w io.Writer, found []result) {
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-28s %9s %8s %8s %8s %8s %8s %8s %7s %8s\n", cellName(found[0].Store, found[0].Workload, found[0].Clients),
		"units/s", "p50 ms", "p99 ms", "tx/unit", "WAL B", "cpu µs", "srv µs", "÷ sql", "÷ best")
	for _, r := range found {
		fmt.Fprintf(w, "  %-26s %9.0f %8.3f %8.3f %8.3f %8.0f %8.1f %8.1f %7s %8s%s\n", r.System,
			r.UnitsPerSecond, r.P50Ms, r.P99Ms, r.TransactionsPerUnit, r.WALBytesPerUnit, r.CPUMicrosPerUnit, r.ServerCPUMicrosPerUnit,
			ratio(found, r, sqlOne), ratio(found, r, sqlBest), disturbed(r))
	}
}

// disturbed marks a line that is not made of undisturbed slices alone.
func disturbed(r result) string {
	if r.Slices > r.Quiet {
		return fmt.Sprintf("  others were busy in %d of %d slices", r.Slices-r.Quiet, r.Slices)
	}
	return ""
}

func ratio(all []result, r result, of string) string {
	q, ok := divide(all, r, of)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", q)
}

// divide returns the throughput of r as a part of another system's in the same
// measurement.
func divide(all []result, r result, of string) (float64, bool) {
	i := slices.IndexFunc(all, func(o result) bool {
		return o.System == of && o.Store == r.Store && o.Workload == r.Workload && o.Clients == r.Clients
	})
	if i < 0 || all[i].UnitsPerSecond == 0 {
		return 0, false
	}
	return r.UnitsPerSecond / all[i].UnitsPerSecond, true
}

// judge prints a line for each required ratio that was measured.
func judge(w io.Writer, all []result) {
	fmt.Fprintln(w)
	for _, q := range required {
		i := slices.IndexFunc(all, func(r result) bool {
			return r.System == ours && r.Store == q.store && r.Workload == q.workload && r.Clients == q.clients
		})
		if i < 0 {
			continue
		}
		got, ok := divide(all, all[i], q.of)
		if !ok {
			continue
		}
		verdict := "holds"
		if got < q.least {
			verdict = "FAILS"
		}
		fmt.Fprintf(w, "%-5s  %s: %.2f of %s, required %.2f\n", verdict, cellName(q.store, q.workload, q.clients), got, q.of, q.least)
	}
}

func writeJSON(path string, all []result) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// quantile of values in order.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func per(sum float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

func round(v, places float64) float64 { return math.Round(v*places) / places }
