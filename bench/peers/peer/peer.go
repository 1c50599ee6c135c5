// Package peer is the program of another product that takes turns with Holdfast in a benchmark, as a
// process of its own. The benchmark writes a [Turn] as a line of JSON to its standard input, and reads
// a line of JSON from its standard output: first a [Hello], then a [Done] for each turn. The program
// ends when its input ends.
//
//	peer.Serve(peer.Hello{Version: "v1.0.0"}, map[string]peer.Workload{"run-3": peer.Calls(unit)})
package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Hello is the first line: the program is ready.
type Hello struct {
	Version   string   `json:"version"`
	Workloads []string `json:"workloads"`
}

// Turn asks for a slice of a workload: Clients callers for the duration Long or, if the work is made
// beforehand, Items items.
type Turn struct {
	Workload string        `json:"workload"`
	Clients  int           `json:"clients"`
	Long     time.Duration `json:"long"`
	Items    int           `json:"items"`
	// Prepare asks only for the preparation of the slice. The slice itself is the next turn.
	Prepare bool `json:"prepare,omitempty"`
}

// Done is a slice that was done.
type Done struct {
	Units     int             `json:"units"`
	Took      time.Duration   `json:"took"`
	CPU       time.Duration   `json:"cpu"` // of the process
	Latencies []time.Duration `json:"latencies,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// Workload does a turn.
type Workload func(Turn) (Done, error)

// Serve answers turns until the input ends.
func Serve(hello Hello, workloads map[string]Workload) error {
	for name := range workloads {
		hello.Workloads = append(hello.Workloads, name)
	}
	slices.Sort(hello.Workloads)
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(hello); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var t Turn
		if err := json.Unmarshal(in.Bytes(), &t); err != nil {
			return fmt.Errorf("turn: %w", err)
		}
		if err := out.Encode(do(workloads[t.Workload], t)); err != nil {
			return err
		}
	}
	return in.Err()
}

func do(w Workload, t Turn) Done {
	if w == nil {
		return Done{Error: fmt.Sprintf("unknown workload %q", t.Workload)}
	}
	before := cpu()
	d, err := w(t)
	d.CPU = cpu() - before
	if err != nil {
		d.Error = err.Error()
	}
	return d
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Version returns the version of a module that the program is built with.
func Version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return "unknown"
}

// Calls is a workload of callers that call unit again as soon as it has returned. n is different in each call.
func Calls(unit func(ctx context.Context, n int64) error) Workload {
	var calls atomic.Int64
	return func(t Turn) (Done, error) {
		if t.Prepare {
			return Done{}, nil
		}
		var group sync.WaitGroup
		latencies, errs := make([][]time.Duration, t.Clients), make([]error, t.Clients)
		start := time.Now()
		for client := range t.Clients {
			group.Go(func() {
				for begun := start; begun.Sub(start) < t.Long; {
					if errs[client] = unit(context.Background(), calls.Add(1)); errs[client] != nil {
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
		return Done{Units: len(all), Took: time.Since(start), Latencies: all}, errors.Join(errs...)
	}
}
