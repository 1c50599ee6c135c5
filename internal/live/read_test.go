package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/live"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

func create(ctx context.Context, d store.Doer, id string) error {
	_, err := entities.Create(ctx, d, entities.CreateArgs{Lifecycle: "l", ID: id, Status: "s"})
	return err
}

func start(t *testing.T, e *holdfast.Engine) live.Place {
	t.Helper()
	p, err := live.Start(t.Context(), engine.Of(e))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// resumed returns the place as a client gives it back.
func resumed(t *testing.T, p live.Place) live.Place {
	t.Helper()
	again, ok := live.Parse(p.Text())
	if !ok || again.Text() != p.Text() {
		t.Fatalf("%s became %s", p.Text(), again.Text())
	}
	return again
}

// read reads to the end, and counts each event.
func read(t *testing.T, e *holdfast.Engine, p *live.Place, far bool, told map[string]int) {
	t.Helper()
	for {
		b, err := live.Read(t.Context(), engine.Of(e), resumed(t, *p), far, live.Limit())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range b.Items {
			told[fmt.Sprint(i.Stream, " ", i.Version)]++
		}
		*p = b.Place
		if !b.More {
			return
		}
	}
}

// TestEachEventIsReadOnce verifies that a reader that reads near and far, page by page, and continues from texts of places,
// gets every event once, while several callers write, and some of their transactions are long.
func TestEachEventIsReadOnce(t *testing.T) {
	live.SetLimit(3)
	t.Cleanup(func() { live.SetLimit(5000) })
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		dice := rand.New(rand.NewPCG(seed, 0))
		if err := create(t.Context(), engine.Of(e), "before"); err != nil {
			t.Fatal(err)
		}
		p, told := start(t, e), make(map[string]int)
		reads := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := range 20 {
					if i%5 > 0 {
						if err := create(t.Context(), engine.Of(e), fmt.Sprint(w, "-", i)); err != nil {
							t.Error(err)
						}
						continue
					}
					err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
						err := create(ctx, store.DoerOf(tx), fmt.Sprint(w, "-", i))
						<-reads // so the transaction is open during at least one
						<-reads
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		ended := make(chan struct{})
		go func() { writers.Wait(); close(ended) }()
		for going := true; going; {
			select {
			case <-ended:
				going = false
			default:
			}
			read(t, e, &p, dice.IntN(3) == 0, told)
			select {
			case reads <- struct{}{}:
			default:
			}
		}
		read(t, e, &p, true, told)
		for w := range 4 {
			for i := range 20 {
				if name := fmt.Sprintf("$entity/l/%d-%d 0", w, i); told[name] != 1 {
					t.Errorf("%s was told %d times", name, told[name])
				}
			}
		}
		if len(told) != 80 {
			t.Errorf("%d events were told, want 80", len(told))
		}
	})
}

// TestLateEvents verifies that events with ids that are old when they are committed are found by a read that goes back
// far, once, although near reads took place meanwhile; and that a transaction that stays open loses nothing and hides nothing.
func TestLateEvents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		p, told := start(t, e), make(map[string]int)
		p.From = retention.Back(p.From, -time.Minute) // so every id is old
		if err := create(t.Context(), engine.Of(e), "late"); err != nil {
			t.Fatal(err)
		}
		read(t, e, &p, false, told)
		read(t, e, &p, false, told)
		if len(told) > 0 {
			t.Fatalf("near reads told %v", told)
		}
		read(t, e, &p, true, told)
		read(t, e, &p, true, told)
		began, let, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
				err := create(ctx, store.DoerOf(tx), "open")
				close(began)
				<-let
				return err
			})
		}()
		<-began
		for i := range 3 {
			if strings.HasSuffix(t.Name(), "postgres") { // SQLite has one writer
				if err := create(t.Context(), engine.Of(e), fmt.Sprint("during", i)); err != nil {
					t.Fatal(err)
				}
			}
			read(t, e, &p, i == 1, told)
		}
		close(let)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		read(t, e, &p, false, told)
		read(t, e, &p, true, told)
		for name, n := range told {
			if n != 1 {
				t.Errorf("%s was told %d times", name, n)
			}
		}
		if told["$entity/l/late 0"]+told["$entity/l/open 0"] != 2 {
			t.Errorf("told %v", told)
		}
	})
}

// TestAForeignPlace verifies that a place of another database is refused, and texts that are no places.
func TestAForeignPlace(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		p := start(t, e)
		p.Far.Next += 1 << 50
		if _, err := live.Read(t.Context(), engine.Of(e), p, true, live.Limit()); fault.CodeOf(err) != fault.Validation {
			t.Errorf("got %v", err)
		}
		p = start(t, e)
		p.Position = 99
		if _, err := live.Read(t.Context(), engine.Of(e), p, true, live.Limit()); fault.CodeOf(err) != fault.Validation {
			t.Errorf("got %v", err)
		}
	})
	for _, text := range []string{"", "x", "{}", `{"i":"` + strings.Repeat("g", 32) + `","l":"` + retention.First + `"}`, `{"p":-1,"i":"` + retention.First + `","l":"` + retention.First + `"}`,
		`{"u":{},"i":"` + retention.First + `","l":"` + retention.First + `"}`} {
		if _, ok := live.Parse(text); ok {
			t.Errorf("%s was taken for a place", text)
		}
	}
}

// TestLongDataIsLeftOut verifies that the data of an event is told only if it is short.
func TestLongDataIsLeftOut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		p := start(t, e)
		for id, size := range map[string]int{"short": 10, "long": 10_000} {
			note, _ := json.Marshal(map[string]string{"x": strings.Repeat("x", size)})
			if err := create(t.Context(), engine.Of(e), id); err != nil {
				t.Fatal(err)
			}
			if _, err := entities.Transition(t.Context(), engine.Of(e), entities.TransitionArgs{Lifecycle: "l", ID: id, From: []string{"s"}, To: "s", Event: "moved", Note: note}); err != nil {
				t.Fatal(err)
			}
		}
		b, err := live.Read(t.Context(), engine.Of(e), p, false, live.Limit())
		if err != nil || len(b.Items) != 4 {
			t.Fatalf("got %+v, %v", b.Items, err)
		}
		for _, i := range b.Items {
			if (i.Name == "moved" && strings.HasSuffix(i.Stream, "long")) != (len(i.Data) == 0) {
				t.Errorf("%s has data %.50s", i.Stream, i.Data)
			}
		}
	})
}
