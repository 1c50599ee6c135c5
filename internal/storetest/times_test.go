package storetest

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
)

// TestTimesAreThoseOfUTC verifies that the database returns times in UTC, alone and in a group, in
// any local zone.
func TestTimesAreThoseOfUTC(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		e := engine.Of(hf)
		made, err := entities.Create(t.Context(), e, entities.CreateArgs{Lifecycle: "l", ID: "x", Status: "a"})
		if err != nil {
			t.Fatal(err)
		}
		again, err := entities.Create(t.Context(), e, entities.CreateArgs{Lifecycle: "l", ID: "x", Status: "a"}) // the general statement returns the reason
		if err == nil {
			t.Fatal("the second create succeeded, want an error")
		}
		read, err := entities.Get(t.Context(), e, "l", "x")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{made.CreatedAt, again.CreatedAt, read.CreatedAt, read.UpdatedAt} {
			if at.Location() != time.UTC {
				t.Errorf("%s has location %s, want UTC", at, at.Location())
			}
		}
	})
}
