// Package stage is the theatre that the examples play in: processes that race each
// other and are killed at random moments, and the questions that are asked of the
// tables afterwards. There is nothing to learn about Holdfast here but in
// [DB.In], which is how a program's own writes join Holdfast's transaction, and in
// [Stage.Callers], which is what the answers to a fired step mean.
//
// A program is both the play and its actors: it starts itself again, with the flag
// -node, as often as it needs processes.
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

// How many processes there are, how many callers want the same thing of the same
// invoice at once, and how often a process is killed before it is left in peace.
const (
	Nodes   = 4
	Callers = 32
	lives   = 2
)

// limit is how long a race may take before it counts as stuck.
const limit = 60 * time.Second

// Stage is what a program plays on: a database, and a folder for the world outside.
type Stage struct {
	DB *DB
	// Dir is a folder of the play's own, which all of its processes see.
	Dir string
	// Log is where the engines talk: nowhere, unless the flag -v asks for it.
	Log *slog.Logger

	seed    uint64
	verbose bool
	broken  int
	draw    sync.Mutex
	random  *rand.Rand    // guarded by draw
	begin   chan struct{} // a node: closed when the race begins
}

// Main is the main function of an example. play sets the tables up, has them raced
// over ([Stage.Race]) and asks whether all is well; node is what each of the
// processes does that race.
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
	db := flags.String("db", "", "sqlite:path or postgres://…, of a database without these tables (default: a temporary SQLite file)")
	dir := flags.String("dir", "", "where the world outside keeps its files (default: a temporary folder)")
	seed := flags.Uint64("seed", rand.Uint64(), "of the random moments")
	verbose := flags.Bool("v", false, "show what the engines log")
	child := flags.Bool("node", false, "be one of the processes (the program starts itself with it)")
	_ = flags.Parse(os.Args[1:]) // it exits by itself

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
		return 1, fmt.Errorf("%d of what should hold does not", s.broken)
	}
	return 0, nil
}
