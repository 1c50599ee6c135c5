package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestIntervalOfAMedian(t *testing.T) {
	ordered := func(n int) (all []float64) {
		for i := range n {
			all = append(all, float64(i+1))
		}
		return all
	}
	// The ranks are those of the tables of the sign test at 5 %.
	for _, c := range []struct {
		n         int
		low, high float64
	}{{1, 1, 1}, {5, 1, 5}, {6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {12, 3, 10}, {20, 6, 15}, {25, 8, 18}} {
		if low, high := interval(ordered(c.n)); low != c.low || high != c.high {
			t.Errorf("%d values: got %v to %v, want %v to %v", c.n, low, high, c.low, c.high)
		}
	}
}

func resultOf(system string, clients int, perSecond ...int) result {
	r := result{Store: "postgres", Workload: "run-3", Clients: clients, System: system}
	for i, n := range perSecond {
		latency := time.Second / time.Duration(n)
		r.samples = append(r.samples, sample{round: i + 1, units: n, took: time.Second, latencies: []time.Duration{latency, latency}})
	}
	return r
}

// Verifies that goals compare slices of the same round, in the direction of their measure, and say
// when the interval includes the bound.
func TestGoals(t *testing.T) {
	mine := resultOf(ours, 1, 100, 200, 300, 400, 500, 600, 700)
	mine.P50Ms = 2
	half := resultOf(peerDBOS, 1, 50, 100, 150, 200, 250, 300, 350)
	at := goal{"postgres", "run-3", 1, rate, peerDBOS, 2}
	if j := at.judge([]result{half, mine}); !j.Met || j.Got != 2 || j.Unsure {
		t.Errorf("a ratio of 2 in each round: %+v", j)
	}
	at.bound = 2.1
	if j := at.judge([]result{half, mine}); j.Met || j.Unsure {
		t.Errorf("a ratio of 2, where 2.1 is required: %+v", j)
	}
	at.measure, at.bound = p50, 0.6
	if j := at.judge([]result{half, mine}); !j.Met || j.Got != 0.5 {
		t.Errorf("half the latency: %+v", j)
	}
	at.measure, at.bound = rate, 2
	if j := at.judge([]result{resultOf(peerDBOS, 1, 60, 40, 160, 190, 260, 280, 360), mine}); !j.Unsure {
		t.Errorf("ratios on both sides of the bound: %+v", j)
	}
	if j := at.judge([]result{mine}); j.Measured {
		t.Errorf("without the other system: %+v", j)
	}
}

func TestGoalTable(t *testing.T) {
	var out bytes.Buffer
	goalTable(&out, judge([]result{resultOf(ours, 16, 100, 200), resultOf(sqlOne, 16, 100, 200)}))
	for _, want := range []string{"postgres/run-3/16 ", " yes", "not measured", "≤ 25 ms", "≥ 0.75"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, out.String())
		}
	}
}
