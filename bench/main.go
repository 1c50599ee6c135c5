// Command bench measures Holdfast against SQL written by hand for the same job,
// on the same databases, in the same run.
//
//	make bench                                  # all, into bench/results.json
//	go run . -run 'postgres/transition' -quick  # in bench/, with a PostgreSQL at hand
//
// Each measurement is a workload on a store with a number of clients. Its
// systems take turns in short slices, in an order that rotates, so that what
// else the machine does in the meantime meets them alike; the first round warms
// up and is thrown away, and the median of the others is reported. What counts
// is the ratio of two systems of one run, not a figure by itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"time"
)

// config is what the flags say.
type config struct {
	out      string
	run      *regexp.Regexp
	systems  *regexp.Regexp
	rounds   int
	slice    time.Duration
	patience time.Duration
	postgres string
	conns    int
	writers  int
	dir      string
	profile  string
	items    int // of a batch that are there for a slice

	drainEvents, drainStreams int
	batchItems                int
}

func main() {
	c, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (c config, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var run, systems string
	var quick bool
	flags.StringVar(&c.out, "o", "", "write the results to this file, as JSON")
	flags.StringVar(&run, "run", "", "measure only what matches this regexp: store/workload/clients")
	flags.StringVar(&systems, "systems", "", "measure only the systems that match this regexp")
	flags.IntVar(&c.rounds, "rounds", 25, "rounds of a measurement; the first is thrown away")
	flags.DurationVar(&c.slice, "slice", 200*time.Millisecond, "how long a system works in a round")
	flags.DurationVar(&c.patience, "patience", 45*time.Second, "how long a measurement repeats slices in which others used the machine")
	flags.BoolVar(&quick, "quick", false, "fewer and shorter rounds")
	flags.StringVar(&c.postgres, "pg", "", "measure this PostgreSQL server (a superuser's URL) instead of a throwaway one")
	flags.IntVar(&c.conns, "conns", 16, "connections of a system by hand on PostgreSQL")
	flags.IntVar(&c.writers, "writers", 2, "writers of sql-best on PostgreSQL, for each kind of call")
	flags.StringVar(&c.dir, "dir", ".", "where to put the SQLite files: a disk, not a memory file system")
	var backlog string
	flags.StringVar(&backlog, "drain", "", "measure only how fast a reaction works off a backlog: events/streams, 10000/1000")
	flags.IntVar(&c.batchItems, "batch", 0, "measure only how long a batch of so many items takes, made and done: 100000")
	flags.StringVar(&c.profile, "cpuprofile", "", "write a CPU profile of all slices to this file")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if backlog != "" {
		if _, err := fmt.Sscanf(backlog, "%d/%d", &c.drainEvents, &c.drainStreams); err != nil || c.drainStreams < 1 || c.drainEvents%c.drainStreams != 0 {
			return c, fmt.Errorf("-drain is events/streams, of which one divides the other, not %q", backlog)
		}
	}
	c.items = 20_000
	if quick {
		c.rounds, c.slice, c.patience, c.items = 6, 150*time.Millisecond, 0, 5_000
	}
	if c.drainEvents == 0 && c.batchItems == 0 {
		c.rounds = max(c.rounds, 2)
	}
	if c.run, err = regexp.Compile(run); err == nil {
		c.systems, err = regexp.Compile(systems)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	return c, err
}

func bench(ctx context.Context, c config) error {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if c.profile != "" {
		f, err := os.Create(c.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if c.drainEvents > 0 {
		_, err := drain(ctx, c)
		return err
	}
	if c.batchItems > 0 {
		return wholeBatch(ctx, c)
	}
	var all []result
	for _, open := range []func(context.Context, config) (*place, error){openPostgres, openSQLite} {
		found, err := measurePlace(ctx, c, open)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	judge(os.Stdout, all)
	if c.out == "" {
		return nil
	}
	return writeJSON(c.out, all)
}
