package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

type benchCommand struct {
	DB       string        `name:"db" default:"sqlite:holdfast.db" placeholder:"DATABASE" help:"Database: sqlite:FILE, postgres://… or host=…. Default: sqlite:holdfast.db."`
	Duration time.Duration `setting:"-" default:"1m" placeholder:"DURATION" help:"How long to measure in total, excluding setup and removal. Default: 1m."`
	Callers  []int         `setting:"-" default:"1,16" placeholder:"N" help:"Numbers of concurrent callers to measure with. Default: 1,16."`
	Output   string        `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"Output format: table or json."`
}

const (
	minBench   = time.Second
	maxBench   = time.Hour
	maxCallers = 256
	// removeWithin limits the removal, which an interrupt does not cancel.
	removeWithin = 30 * time.Second
)

// benchReport is the output of the command.
type benchReport struct {
	Database string        `json:"database"`
	Results  []benchResult `json:"results"`
}

type benchResult struct {
	Workload  string  `json:"workload"`
	Callers   int     `json:"callers"`
	Calls     int     `json:"calls"`
	PerSecond float64 `json:"perSecond"`
	P50Ms     float64 `json:"p50Ms"`
	P95Ms     float64 `json:"p95Ms"`
	P99Ms     float64 `json:"p99Ms"`
}

// Run measures in a place of its own and removes that.
func (c *benchCommand) Run(ctx context.Context, p *program) error {
	if c.Duration < minBench || c.Duration > maxBench {
		return misuse("--duration must be between %s and %s, got %s", minBench, maxBench, c.Duration)
	}
	if len(c.Callers) == 0 {
		return misuse("--callers must list at least one number, for example 1,16")
	}
	for _, n := range c.Callers {
		if n < 1 || n > maxCallers {
			return misuse("each number in --callers must be between 1 and %d, got %d", maxCallers, n)
		}
	}
	place, err := c.scratch()
	if err != nil {
		return err
	}
	p.log.Info("benchmark started", "database", place.name, "duration", c.Duration)
	report, err := c.measure(ctx, p, place.db)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err := errors.Join(err, place.removed(ctx)); err != nil {
		return err
	}
	if c.Output == "json" {
		return p.showJSON(report)
	}
	return report.table().write(p.stdout)
}

func (r benchReport) table() *table {
	t := &table{heads: []string{"WORKLOAD", "CALLERS", "PER SECOND", "P50 MS", "P95 MS", "P99 MS"}}
	for _, x := range r.Results {
		t.add(x.Workload, strconv.Itoa(x.Callers), fmt.Sprintf("%.0f", x.PerSecond), fmt.Sprintf("%.2f", x.P50Ms), fmt.Sprintf("%.2f", x.P95Ms), fmt.Sprintf("%.2f", x.P99Ms))
	}
	return t
}

// scratchPlace is a database that exists only for the measurement.
type scratchPlace struct {
	name   string
	db     holdfast.Database
	remove func(context.Context) error
}

// removed removes the place, even if ctx is cancelled. The error says what is left.
func (s scratchPlace) removed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	if err := s.remove(ctx); err != nil {
		return fmt.Errorf("%s could not be removed, so remove it manually: %w", s.name, err)
	}
	return nil
}

// scratch returns a schema of its own in the database, or a file in a folder next to the file.
func (c *benchCommand) scratch() (s scratchPlace, err error) {
	random := make([]byte, 4)
	rand.Read(random) // never fails
	name := store.ScratchPrefix + hex.EncodeToString(random)
	flags := databaseFlags{DB: c.DB, Schema: name}
	if s.db, err = flags.open(); err != nil {
		return s, err
	}
	path, ok := flags.sqlitePath()
	if !ok {
		return scratchPlace{"schema " + name, s.db, store.DatabaseOf(s.db).(store.Dropper).Drop}, nil
	}
	folder := filepath.Join(filepath.Dir(path), name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return s, fault.New(fault.Validation, "cannot create a folder next to %s: use --db to choose a path where you have write permission", path).Wrap(err)
	}
	db, err := openSQLite(filepath.Join(folder, "bench.db"))
	return scratchPlace{"folder " + folder, db, func(context.Context) error { return os.RemoveAll(folder) }}, err
}
