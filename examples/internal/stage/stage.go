// Package stage is the test bench of the examples: it runs processes that race each other,
// kills them at random moments, and then checks the tables.
//
// Two parts show how to use Holdfast: [DB.In] adds a program's own writes to a transaction of
// Holdfast, and [Stage.Callers] handles the errors of a fired step.
//
// An example program starts itself again, with the flag -node, for each process that it needs.
package stage

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Numbers of a race.
const (
	Nodes    = 4  // processes
	Callers  = 32 // callers that fire the same step of the same invoice at once
	maxKills = 2  // of each process; a process that was restarted after the last kill is not killed
)

// limit is the timeout of a race.
const limit = 60 * time.Second

// Stage is the environment of an example: a database, and a folder for external services.
type Stage struct {
	DB *DB
	// Dir is a folder that all processes share.
	Dir string
	// Log is the log of the engines. It discards everything unless -v is given.
	Log *slog.Logger

	seed    uint64
	verbose bool
	broken  int
	draw    sync.Mutex
	random  *rand.Rand    // guarded by draw
	begin   chan struct{} // in a child process: closed when the race begins
}

// Main is the main function of an example. play creates the tables, runs the race with
// [Stage.Race] and checks the result. node runs in each of the racing processes.
func Main(play func(context.Context, *Stage) error, node func(context.Context, *Stage, []string) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*limit)
	code, err := run(ctx, play, node)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(ctx context.Context, play func(context.Context, *Stage) error, node func(context.Context, *Stage, []string) error) (code int, err error) {
	flags := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	db := flags.String("db", "", "database that does not have the example's tables yet: sqlite:path or postgres://… (default: a temporary SQLite file)")
	dir := flags.String("dir", "", "folder for the files of external services (default: a temporary folder)")
	seed := flags.Uint64("seed", rand.Uint64(), "seed for the random timing")
	verbose := flags.Bool("v", false, "show the logs of the engines")
	child := flags.Bool("node", false, "run as one of the racing processes (used internally)")
	_ = flags.Parse(os.Args[1:]) // exits on an error

	s := &Stage{Dir: *dir, random: rand.New(rand.NewPCG(*seed, 0)), Log: slog.New(slog.DiscardHandler), seed: *seed, verbose: *verbose}
	if *verbose {
		s.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if s.Dir == "" {
		if s.Dir, err = os.MkdirTemp("", "holdfast-example-"); err != nil {
			return 1, err
		}
		defer os.RemoveAll(s.Dir)
	}
	if *db == "" {
		*db = "sqlite:" + filepath.Join(s.Dir, "app.db")
	}
	if s.DB, err = OpenDB(*db); err != nil {
		return 1, err
	}
	defer s.DB.Close()
	if *child {
		return s.node(ctx, flags.Args(), node)
	}
	fmt.Printf("on %s, with -seed %d\n", s.DB.Name(), s.seed)
	if err := play(ctx, s); err != nil {
		return 1, err
	}
	if s.broken > 0 {
		return 1, fmt.Errorf("%d checks failed", s.broken)
	}
	return 0, nil
}
