// Command bench compares Holdfast, through its public API, with hand-written SQL for the same job and
// with other products, on the same databases and at the same time. It prints Holdfast's goals and the
// measured results.
//
//	make bench                                  # everything; writes bench/results.json and bench/results.svg
//	go run . -run 'postgres/transition' -quick  # in bench/, a part of it
//
// Each measurement is a workload on a store with a number of clients. Its systems take turns in short
// slices, in a rotating order, so that other activity on the machine affects them equally. The first
// round warms up and is discarded; the median of the other rounds is reported. Compare the ratio of two
// systems in the same round, not single figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"
)

// config holds the values of the flags.
type config struct {
	json     string
	svg      string
	run      *regexp.Regexp
	systems  *regexp.Regexp
	rounds   int
	slice    time.Duration
	patience time.Duration
	postgres string
	conns    int
	writers  int
	dir      string
	pgdir    string
	peers    string
	profile  string

	drainEvents, drainStreams int
	checkRuns                 int
	reads                     int
	liveRounds                int
	liveSlice                 time.Duration
	retain                    time.Duration
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
	flags.StringVar(&c.json, "json", "", "write the results to this file, as JSON")
	flags.StringVar(&c.svg, "svg", "", "draw the goals into this file, as SVG")
	flags.StringVar(&run, "run", "", "measure only the store/workload/clients that match this regexp")
	flags.StringVar(&systems, "systems", "", "measure only the systems that match this regexp")
	flags.IntVar(&c.rounds, "rounds", 25, "number of rounds per measurement; the first is discarded")
	flags.DurationVar(&c.slice, "slice", 200*time.Millisecond, "how long each system works in a round")
	flags.DurationVar(&c.patience, "patience", 45*time.Second, "how long a measurement repeats slices that other programs disturbed")
	flags.BoolVar(&quick, "quick", false, "use fewer and shorter rounds")
	flags.StringVar(&c.postgres, "pg", "", "measure the PostgreSQL server at this superuser URL instead of a temporary one with default durability")
	flags.StringVar(&c.pgdir, "pgdir", "/tmp", "folder for the data of the temporary server: on a disk, and accessible to all users if this process runs as root")
	flags.StringVar(&c.peers, "peers", "peers", "folder with the programs of other products; empty measures no other product")
	flags.IntVar(&c.conns, "conns", 16, "connections of each hand-written SQL system on PostgreSQL")
	flags.IntVar(&c.writers, "writers", 2, "writers of sql-best on PostgreSQL, per kind of call")
	flags.StringVar(&c.dir, "dir", ".", "folder for the SQLite files: on a disk, not in a memory file system")
	var backlog string
	flags.StringVar(&backlog, "drain", "", "measure only how fast a reaction drains a backlog of events/streams, such as 10000/1000")
	flags.IntVar(&c.checkRuns, "check", 0, "also measure how long a check takes with this number of runs and with a tenth of it, such as 1000000")
	flags.IntVar(&c.reads, "reads", 0, "measure only the latency of every GET route with this number of entities, runs and events, such as 1000000")
	flags.IntVar(&c.liveRounds, "live", 0, "measure only what GET live costs, in this number of rounds")
	flags.DurationVar(&c.liveSlice, "live-slice", 6*time.Second, "how long each half of such a round is")
	flags.DurationVar(&c.retain, "retain", 0, "measure only what retention deletes, and what that costs the writers, for this long per database, such as 10m")
	flags.StringVar(&c.profile, "cpuprofile", "", "write a CPU profile of all slices to this file")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if backlog != "" {
		if _, err := fmt.Sscanf(backlog, "%d/%d", &c.drainEvents, &c.drainStreams); err != nil || c.drainStreams < 1 || c.drainEvents%c.drainStreams != 0 {
			return c, fmt.Errorf("-drain must be events/streams, with events a multiple of streams, got %q", backlog)
		}
	}
	if quick {
		c.rounds, c.slice, c.patience = 7, 150*time.Millisecond, 0
	}
	if c.drainEvents == 0 {
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
	stop, env, err := startServer(ctx, c)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("PostgreSQL %s, fsync %s, synchronous_commit %s, data %s\n", env["server_version"], env["fsync"], env["synchronous_commit"], env["data_directory"])
	if c.reads > 0 {
		return measureReads(ctx, c)
	}
	if c.liveRounds > 0 {
		return measureLive(ctx, c)
	}
	if c.retain > 0 {
		return measureRetention(ctx, c)
	}
	if c.drainEvents > 0 {
		_, err := drain(ctx, c)
		return err
	}
	env["cpus"], env["go"] = strconv.Itoa(runtime.NumCPU()), runtime.Version()
	all, err := measureAll(ctx, c)
	r := report{Environment: env, Results: all, Goals: judge(all)}
	goalTable(os.Stdout, r.Goals)
	if err == nil && c.json != "" {
		err = writeJSON(c.json, r)
	}
	if err == nil && c.svg != "" {
		err = writeSVG(c.svg, r.Goals)
	}
	return err
}

func measureAll(ctx context.Context, c config) (all []result, err error) {
	for _, open := range []func(context.Context, config) (*place, error){openPostgres, openSQLite} {
		found, err := measurePlace(ctx, c, open)
		all = append(all, found...)
		if err != nil {
			return all, err
		}
	}
	if c.checkRuns == 0 {
		return all, nil
	}
	found, err := measureChecks(ctx, c)
	return append(all, found...), err
}
