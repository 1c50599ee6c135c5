package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// The cost of GET live is measured by itself, in longer slices than other workloads: what it reads every few seconds must be in each. Slices
// with and without clients take turns, and the ratio of two neighbours is reported. The clients are in the same process, and
// only read.

const (
	liveClients = 50
	liveWriters = 16
	liveWatch   = "lifecycle:" + lifecycleName + ",overview,inbox,nodes"
)

// liveLoad is an engine that changes entities as fast as it can, with the HTTP API.
type liveLoad struct {
	store string
	hf    *holdfast.Engine
	url   string
	// rows are entities that the writers change, each its own. There are fewer than a message of GET live can name, so that
	// the messages are as large as they can be.
	rows [liveWriters][10]struct {
		id     string
		closed bool
	}
}

// measureLive prints, for both databases, the throughput with clients as a part of that without.
func measureLive(ctx context.Context, c config) error {
	for _, store := range []string{"sqlite", "postgres"} {
		if !c.run.MatchString(cellName(store, "live", liveClients)) {
			continue
		}
		db, drop, err := database(ctx, c, store)
		if err != nil {
			return err
		}
		err = measureLiveOn(ctx, c, store, db)
		drop()
		if err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return nil
}

// database returns a new database.
func database(ctx context.Context, c config, store string) (holdfast.Database, func(), error) {
	if store == "postgres" {
		url, drop, err := pgtest.Database(ctx, pgtest.Options{})
		return postgres.URL(url), drop, err
	}
	dir, err := os.MkdirTemp(c.dir, ".bench-")
	return sqlite.File(filepath.Join(dir, "bench.db")), func() { _ = os.RemoveAll(dir) }, err
}

func measureLiveOn(ctx context.Context, c config, store string, db holdfast.Database) error {
	api := httpapi.New(httpapi.Options{NoKeys: true})
	hf, err := holdfast.Open(ctx, db, holdfast.Config{}, invoices, api)
	if err != nil {
		return err
	}
	defer hf.Close()
	url, stop, err := listen(ctx, api)
	if err != nil {
		return err
	}
	defer stop()
	defer background(ctx, hf)()
	l := &liveLoad{store: store, hf: hf, url: url}
	for w := range l.rows {
		for i := range l.rows[w] {
			l.rows[w][i].id = fmt.Sprintf("e%d-%d", w, i)
			if _, err := invoices.Create(ctx, hf, l.rows[w][i].id, amount); err != nil {
				return err
			}
		}
	}
	const warmUp = 1 // round
	var rates, times []float64
	for round := range warmUp + c.liveRounds {
		var got [2]liveSlice // without clients, with them
		for i := range got {
			with := i ^ round%2 // each comes first in turn
			if got[with], err = l.slice(ctx, with*liveClients, c.liveSlice); err != nil {
				return err
			}
		}
		fmt.Printf("%s/live/%d: round %d: without clients %s, with them %s\n", store, liveClients, round, got[0], got[1])
		if round >= warmUp {
			rates, times = append(rates, got[1].rate/got[0].rate), append(times, got[1].cpu/got[0].cpu)
		}
	}
	for _, x := range []struct {
		what   string
		ratios []float64
	}{{"transitions/s", rates}, {"CPU time of a transition", times}} {
		slices.Sort(x.ratios)
		low, high := interval(x.ratios)
		fmt.Printf("%s/live/%d: %s with clients by that without: median %.3f (95 %% interval %.3f to %.3f)\n", store, liveClients, x.what, x.ratios[len(x.ratios)/2], low, high)
	}
	return nil
}

// liveSlice is what a slice has shown: transitions a second, and the CPU time of the process for each, in µs. On a busy machine, the
// second is the better figure, except on PostgreSQL, whose server is another process.
type liveSlice struct{ rate, cpu float64 }

func (s liveSlice) String() string {
	return fmt.Sprintf("%.0f transitions/s of %.0f µs", s.rate, s.cpu)
}

// slice changes entities while some clients watch.
func (l *liveLoad) slice(ctx context.Context, clients int, long time.Duration) (s liveSlice, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching, writing sync.WaitGroup
	failed := make(chan error, clients+liveWriters)
	ready := make(chan struct{}, clients)
	for range clients {
		watching.Go(func() {
			if err := l.watch(ctx, ready); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	for range clients {
		select {
		case <-ready:
		case err := <-failed:
			return s, err
		}
	}
	begun, used, ends := clock.Now(), processTime(), clock.Now().Add(long)
	var n atomic.Int64
	for w := range l.rows {
		writing.Go(func() {
			for i := 0; clock.Now().Before(ends); i++ {
				row, from, to := &l.rows[w][i%len(l.rows[w])], "open", "closed"
				if row.closed {
					from, to = to, from
				}
				if _, err := invoices.Fire(ctx, l.hf, row.id, moveStep(from, to), "admin"); err != nil {
					failed <- err
					return
				}
				row.closed = !row.closed
				n.Add(1)
			}
		})
	}
	writing.Wait()
	took := clock.Since(begun)
	used = processTime() - used
	cancel()
	watching.Wait()
	select {
	case err := <-failed:
		return s, err
	default:
		return liveSlice{float64(n.Load()) / took.Seconds(), float64(used.Microseconds()) / float64(n.Load())}, nil
	}
}

// watch reads GET live until ctx ends.
func (l *liveLoad) watch(ctx context.Context, ready chan<- struct{}) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/api/v1/live?watch="+liveWatch, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		return err
	}
	ready <- struct{}{}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
