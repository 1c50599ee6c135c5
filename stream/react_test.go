package stream_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

// Verifies that the progress of a reaction is found from its registration on, and that of an unknown
// one is ErrNotFound, not zero.
func TestProgressOfAnUnknownReaction(t *testing.T) {
	none := func(context.Context, *stream.Delivery) error { return nil }
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		if p, err := stream.GetProgress(t.Context(), e, "known"); err != nil || p != (stream.Progress{}) {
			t.Errorf("a reaction without streams: got %+v, %v", p, err)
		}
		for _, name := range []string{"unknown", ""} {
			if _, err := stream.GetProgress(t.Context(), e, name); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("reaction %q: got %v, want ErrNotFound", name, err)
			}
		}
	}, stream.React("known", stream.Select{}, none, stream.Options{Priority: -5 * time.Second}))
}

// Verifies that invalid options are refused when the engine opens.
func TestOptionsOfAReactionAreChecked(t *testing.T) {
	none := func(context.Context, *stream.Delivery) error { return nil }
	for _, o := range []stream.Options{
		{Priority: time.Millisecond}, {Priority: 1500 * time.Millisecond}, {Priority: time.Hour}, {Timeout: -1}, {Lease: -1}, {MaxCrashes: -1},
	} {
		_, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, stream.React("r", stream.Select{}, none, o))
		if !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("%+v: got %v, want ErrValidation", o, err)
		}
	}
}

// Verifies that options of a close that need an export, and negative ones, are refused.
func TestOptionsOfACloseAreChecked(t *testing.T) {
	e := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.SQLite(t)))
	export := stream.Export(func(context.Context, []stream.Event) error { return nil })
	for name, o := range map[string][]stream.CloseOption{
		"a lease without an export": {stream.Lease(time.Minute)}, "a timeout without an export": {stream.Timeout(time.Minute)},
		"a negative lease": {export, stream.Lease(-1)}, "a negative timeout": {export, stream.Timeout(-1)},
	} {
		if _, err := stream.Close(t.Context(), e, "s", stream.Tombstone, o...); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("%s: got %v, want ErrValidation", name, err)
		}
	}
}

// Verifies that a pattern must fit the source of its streams: before, a pattern for histories that did not begin with ^\$
// was accepted, and never matched.
func TestSourceOfASelection(t *testing.T) {
	none := func(context.Context, *stream.Delivery) error { return nil }
	for _, sel := range []stream.Select{
		{Source: stream.Histories, Pattern: `\$entity/`}, {Source: stream.Histories, Pattern: `^(\$run|\$batch)/`}, {Source: "other"},
		{Pattern: `^\$entity/`}, {Source: stream.Events, Pattern: `^\$entity/`},
	} {
		_, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, stream.React("r", sel, none, stream.Options{}))
		if !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("selection %+v: got %v, want ErrValidation", sel, err)
		}
	}
	for name, db := range map[string]string{"sqlite": holdfasttest.SQLite(t), "postgres": holdfasttest.PostgreSQL(t)} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 10)
			react := func(name string, sel stream.Select) holdfast.Part {
				return stream.React(name, sel, func(_ context.Context, d *stream.Delivery) error { got <- name + " " + d.Stream; return nil }, stream.Options{})
			}
			e := holdfasttest.OpenOn(t, holdfasttest.At(db), react("all", stream.Select{Source: stream.Histories}),
				react("carts", stream.Select{Source: stream.Histories, Pattern: `^\$scope/cart/`}), react("events", stream.Select{Source: stream.Events}))
			testkit.Run(t, e)
			if _, err := scope.In[any](e, "cart", "c").Inc(t.Context(), "n", 1); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Append(t.Context(), e, "s", stream.Any, stream.Event{Name: "n"}); err != nil {
				t.Fatal(err)
			}
			all := []string{<-got, <-got, <-got}
			slices.Sort(all)
			if want := []string{"all $scope/cart/c", "carts $scope/cart/c", "events s"}; !slices.Equal(all, want) {
				t.Errorf("delivered %q, want %q", all, want)
			}
		})
	}
}
