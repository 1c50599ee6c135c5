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

// report is the file that -json writes.
type report struct {
	Environment map[string]string `json:"environment"`
	Goals       []judgement       `json:"goals"`
	Results     []result          `json:"results"`
}

// result is what one system did in one measurement.
type result struct {
	Workload            string  `json:"workload"`
	Store               string  `json:"store"`
	Clients             int     `json:"clients"`
	System              string  `json:"system"`
	Version             string  `json:"version,omitempty"` // of another product
	UnitsPerSecond      float64 `json:"unitsPerSecond"`
	P50Ms               float64 `json:"p50Ms,omitempty"`
	P99Ms               float64 `json:"p99Ms,omitempty"`
	TransactionsPerUnit float64 `json:"transactionsPerUnit"`
	WALBytesPerUnit     float64 `json:"walBytesPerUnit"`
	// CPU of the process that calls and, where the server is on this machine, of the
	// server.
	CPUMicrosPerUnit       float64 `json:"cpuMicrosPerUnit"`
	ServerCPUMicrosPerUnit float64 `json:"serverCpuMicrosPerUnit,omitempty"`
	// Slices is how many slices the result is made of, and Quiet how many slices were undisturbed.
	Slices int `json:"slices,omitempty"`
	Quiet  int `json:"quietSlices,omitempty"`
	// Only for -check: the rows, how long the check took, and how many times as long as with a tenth of the rows.
	Rows    int     `json:"rows,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Growth  float64 `json:"growth,omitempty"`

	samples []sample
}

// table prints one measurement, with the ratios to the hand-written SQL.
func table(w io.Writer, found []result) {
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-28s %9s %8s %8s %8s %8s %8s %8s %7s %8s\n", cellName(found[0].Store, found[0].Workload, found[0].Clients),
		"units/s", "p50 ms", "p99 ms", "tx/unit", "WAL B", "cpu µs", "srv µs", "÷ sql", "÷ best")
	for _, r := range found {
		fmt.Fprintf(w, "  %-26s %9.0f %8s %8s %8s %8s %8s %8s %7s %8s%s\n", r.System, r.UnitsPerSecond,
			known("%.3f", r.P50Ms), known("%.3f", r.P99Ms), known("%.3f", r.TransactionsPerUnit), known("%.0f", r.WALBytesPerUnit), known("%.1f", r.CPUMicrosPerUnit), known("%.1f", r.ServerCPUMicrosPerUnit),
			ratio(found, r, sqlOne), ratio(found, r, sqlBest), disturbed(r))
	}
}

// known formats a figure that not every line has.
func known(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// disturbed marks a line that is not made of undisturbed slices alone.
func disturbed(r result) string {
	if r.Slices > r.Quiet {
		return fmt.Sprintf("  others were busy in %d of %d slices", r.Slices-r.Quiet, r.Slices)
	}
	return ""
}

// ratio returns the throughput of r, divided by that of another system in the same measurement.
func ratio(found []result, r result, of string) string {
	i := slices.IndexFunc(found, func(o result) bool { return o.System == of })
	if i < 0 {
		return "-"
	}
	all := paired(r, found[i], rate)
	if len(all) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", median(all))
}

func writeJSON(path string, r report) error {
	text, err := json.MarshalIndent(r, "", "  ")
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

// quantile returns a quantile of sorted values.
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

// round rounds to multiples of 1/parts.
func round(v, parts float64) float64 { return math.Round(v*parts) / parts }
