package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/stream"
)

var entityCases = []Case{
	{"entity: a new one is at version 0, with its first event", func(e *env) {
		got := e.created("i", "open")
		e.equal("entity", words(got.Lifecycle, got.ID, got.Status, got.Version), "invoice i open 0")
		e.sameJSON("data", got.Data, []byte(`{"cents":100}`))
		e.equal("history", e.names(entities.Stream("invoice", "i")), []string{"created"})
		e.equal("read again", e.entity("i").Status, "open")
	}},
	{"entity: one that exists is a conflict, and stays as it is", func(e *env) {
		e.created("i", "open")
		got, err := entities.Create(e.ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: "invoice", ID: "i", Status: "closed"})
		f := e.refused(err, fault.Conflict)
		e.equal("found", words(f.Fields["status"], f.Fields["version"], got.Status), "open 0 open")
		e.equal("status", e.entity("i").Status, "open")
		e.equal("history", e.names(entities.Stream("invoice", "i")), []string{"created"})
	}},
	{"entity: data is an object, empty if not given", func(e *env) {
		got, err := entities.Create(e.ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: "invoice", ID: "i", Status: "open"})
		e.ok(err)
		e.sameJSON("data", got.Data, []byte(`{}`))
		for _, data := range []string{`[]`, `1`, `null`, `{`, `{"a":1} x`} {
			_, err := entities.Create(e.ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: "invoice", ID: "j", Status: "open", Data: []byte(data)})
			e.refused(err, fault.Validation)
		}
		_, err = entities.Get(e.ctx, engine.Of(e.hf), "invoice", "j")
		e.refused(err, fault.NotFound)
	}},
	{"entity: large integers and any text in data survive", func(e *env) {
		data := []byte(`{"n": 9007199254740993, "m": -9223372036854775808, "t": "żółć 🦀 \" \\ $1"}`)
		_, err := entities.Create(e.ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: "invoice", ID: "i", Status: "open", Data: data})
		e.ok(err)
		e.sameJSON("data", e.entity("i").Data, data)
	}},
	{"entity: one that is not there is not found", func(e *env) {
		_, err := entities.Get(e.ctx, engine.Of(e.hf), "invoice", "i")
		e.refused(err, fault.NotFound)
	}},
	{"entity: a transition moves the status, the version and the history", func(e *env) {
		e.created("i", "open")
		got, err := entities.Transition(e.ctx, engine.Of(e.hf), entities.TransitionArgs{
			Lifecycle: "invoice", ID: "i", From: []string{"open"}, To: "closed", Event: "close", Note: []byte(`{"why":"paid"}`),
			Meta: events.Meta{Actor: "admin", Correlation: "c", Causation: "x"},
		})
		e.ok(err)
		e.equal("entity", words(got.Status, got.Version), "closed 1")
		all, err := holdfast.Collect(stream.Read(e.ctx, e.hf, entities.Stream("invoice", "i"), 1))
		e.ok(err)
		e.equal("event", words(len(all), all[0].Name, all[0].Version, all[0].Actor, all[0].Correlation, all[0].Causation), "1 close 1 admin c x")
		e.sameJSON("event's data", all[0].Data, []byte(`{"from":"open","to":"closed","note":{"why":"paid"}}`))
	}},
	{"entity: a transition from another status is refused, and changes nothing", func(e *env) {
		e.created("i", "open")
		got, err := e.move(e.hf, "i", "closed", "approved")
		f := e.refused(err, fault.InvalidTransition)
		e.equal("found", words(f.Fields["status"], f.Fields["version"], got.Status, got.Version), "open 0 open 0")
		e.equal("entity", words(e.entity("i").Status, e.entity("i").Version), "open 0")
		e.equal("history", e.names(entities.Stream("invoice", "i")), []string{"created"})
	}},
	{"entity: a transition may leave one of several statuses", func(e *env) {
		for _, from := range []string{"sent", "overdue"} {
			e.created(from, from)
			got, err := e.move(e.hf, from, "paid", "sent", "overdue")
			e.ok(err)
			e.equal("status", got.Status, "paid")
			all, err := holdfast.Collect(stream.Read(e.ctx, e.hf, entities.Stream("invoice", from), 1))
			e.ok(err)
			e.sameJSON("event's data", all[0].Data, []byte(`{"from":"`+from+`","to":"paid","note":null}`))
		}
		e.created("draft", "draft")
		_, err := e.move(e.hf, "draft", "paid", "sent", "overdue")
		e.refused(err, fault.InvalidTransition)
	}},
	{"entity: statuses with odd characters are compared as they are", func(e *env) {
		e.created("i", `a"b'c\d`)
		_, err := e.move(e.hf, "i", "x", `a"b'c`, `d`)
		e.refused(err, fault.InvalidTransition)
		_, err = e.move(e.hf, "i", "x", "y", `a"b'c\d`)
		e.ok(err)
	}},
	{"entity: a transition at the expected version wins", func(e *env) {
		e.created("i", "open")
		got, err := entities.Transition(e.ctx, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: []string{"open"}, To: "open", ExpectVersion: at(0), Event: "touch"})
		e.ok(err)
		e.equal("version", got.Version, 1)
	}},
	{"entity: a transition at another version is refused, and told the true one", func(e *env) {
		e.created("i", "open")
		_, err := e.move(e.hf, "i", "open", "open")
		e.ok(err)
		for _, want := range []int64{0, 2} {
			_, err := entities.Transition(e.ctx, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: []string{"open"}, To: "closed", ExpectVersion: at(want), Event: "close"})
			e.moved(err, want, 1)
		}
		e.equal("status", e.entity("i").Status, "open")
	}},
	{"entity: a wrong status says so, whatever the version is", func(e *env) {
		e.created("i", "open")
		_, err := entities.Transition(e.ctx, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: []string{"closed"}, To: "open", ExpectVersion: at(5), Event: "x"})
		e.refused(err, fault.InvalidTransition)
	}},
	{"entity: a lease leaves the status as it is, and refuses every transition, claim and lease", func(e *env) {
		e.created("i", "open")
		take := func(into string) (entities.Entity, error) {
			return entities.Take(e.ctx, engine.Of(e.hf), entities.ClaimArgs{Lifecycle: "invoice", ID: "i", Choices: map[string]entities.Choice{"open": {Into: into, Revert: "open"}},
				Operation: "o", Step: "s", Requester: "r", Holder: "me", Lease: time.Minute})
		}
		held, err := take("open")
		e.ok(err)
		e.equal("held", words(held.Status, held.Version, held.Claim.Phase, held.Claim.Epoch), "open 1 held 1")
		for _, into := range []string{"open", "closing"} {
			_, err := take(into)
			e.refused(err, fault.ClaimFailed)
		}
		for _, from := range [][]string{{"open"}, {"open", "sent"}} {
			_, err := e.move(e.hf, "i", "closed", from...)
			e.refused(err, fault.ClaimFailed)
			_, err = entities.Transition(e.ctx, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: from, To: "closed", ExpectVersion: at(1), Event: "close"})
			e.refused(err, fault.ClaimFailed)
			_, err = entities.Transition(e.ctx, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: from, To: "closed", ExpectVersion: at(0), Event: "close"})
			e.moved(err, 0, 1)
		}
		e.equal("history", e.names(entities.Stream("invoice", "i")), []string{"created", "claimed"})
	}},
	{"entity: a transition replaces data, or leaves it", func(e *env) {
		e.created("i", "open")
		_, err := e.move(e.hf, "i", "sent", "open")
		e.ok(err)
		e.sameJSON("kept", e.entity("i").Data, []byte(`{"cents":100}`))
		_, err = entities.Transition(e.ctx, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: []string{"sent"}, To: "paid", Event: "pay", Data: []byte(`{"paid":true}`)})
		e.ok(err)
		e.sameJSON("replaced", e.entity("i").Data, []byte(`{"paid":true}`))
	}},
	{"entity: a transition of what is not there is not found, and makes nothing", func(e *env) {
		_, err := e.move(e.hf, "i", "closed", "open")
		e.refused(err, fault.NotFound)
		_, err = e.move(e.hf, "i", "closed", "open", "sent")
		e.refused(err, fault.NotFound)
		e.equal("history", e.names(entities.Stream("invoice", "i")), []string{})
	}},
	{"entity: a transition that names nothing it leaves is refused", func(e *env) {
		e.created("i", "open")
		_, err := e.move(e.hf, "i", "closed")
		e.refused(err, fault.Validation)
		_, err = e.move(e.hf, "i", "", "open")
		e.refused(err, fault.Validation)
		_, err = entities.Transition(e.ctx, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: []string{"open"}, To: "x"})
		e.refused(err, fault.Validation)
		e.equal("version", e.entity("i").Version, 0)
	}},
	{"entity: the history has an event for each version, in order", func(e *env) {
		e.created("i", "a")
		for range 5 {
			_, err := e.move(e.hf, "i", "b", "a")
			e.ok(err)
			_, err = e.move(e.hf, "i", "a", "b")
			e.ok(err)
		}
		e.equal("events", len(e.names(entities.Stream("invoice", "i"))), e.entity("i").Version+1)
	}},
	{"entity: names that cannot be told apart later are refused", func(e *env) {
		for _, name := range []string{"", "a/b", "a\x00", strings.Repeat("x", 256)} {
			_, err := entities.Create(e.ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: name, ID: "i", Status: "open"})
			e.refused(err, fault.Validation)
		}
		_, err := entities.Create(e.ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: "invoice", ID: "a/b", Status: "open"})
		e.ok(err)
		e.equal("history", e.names(entities.Stream("invoice", "a/b")), []string{"created"})
	}},
	{"entity: the same id under two lifecycles is two entities", func(e *env) {
		e.created("i", "open")
		_, err := entities.Create(e.ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: "order", ID: "i", Status: "new"})
		e.ok(err)
		_, err = e.move(e.hf, "i", "closed", "open")
		e.ok(err)
		other, err := entities.Get(e.ctx, engine.Of(e.hf), "order", "i")
		e.ok(err)
		e.equal("the other", words(other.Status, other.Version), "new 0")
	}},
	{"entity: the time of creation stays, that of the change moves on", func(e *env) {
		made := e.created("i", "open")
		got, err := e.move(e.hf, "i", "closed", "open")
		e.ok(err)
		if !got.CreatedAt.Equal(made.CreatedAt) || got.UpdatedAt.Before(made.UpdatedAt) || made.CreatedAt.Year() < 2020 {
			e.Errorf("created at %s, then %s; updated at %s, then %s", made.CreatedAt, got.CreatedAt, made.UpdatedAt, got.UpdatedAt)
		}
	}},
	{"entity: 16 racing creates, one wins", func(e *env) {
		for round := range 10 {
			id := words(round)
			won, lost := holdfasttest.Race(e.T, 16, func(i int) error {
				_, err := entities.Create(e.ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: "invoice", ID: id, Status: fmt.Sprint("s", i)})
				return err
			})
			e.equal("won", won, 1)
			for _, err := range lost {
				e.refused(err, fault.Conflict)
			}
			e.equal("history", e.names(entities.Stream("invoice", id)), []string{"created"})
		}
	}},
	{"entity: 16 racing transitions of one status, one wins", func(e *env) {
		for round := range 10 {
			id := words(round)
			e.created(id, "open")
			won, lost := holdfasttest.Race(e.T, 16, func(i int) error {
				from := []string{"open"}
				if i%2 == 1 { // the form for several statuses races the form for one
					from = append(from, "reopened")
				}
				_, err := e.move(e.hf, id, "closed", from...)
				return err
			})
			e.equal("won", won, 1)
			for _, err := range lost {
				f := e.refused(err, fault.InvalidTransition)
				e.equal("told", words(f.Fields["status"], f.Fields["version"]), "closed 1")
			}
			e.equal("history", e.names(entities.Stream("invoice", id)), []string{"created", "moved"})
		}
	}},
	{"entity: racing transitions at one version, one wins, the others are told", func(e *env) {
		e.created("i", "open")
		for v := range int64(10) {
			won, lost := holdfasttest.Race(e.T, 8, func(int) error {
				_, err := entities.Transition(e.ctx, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: []string{"open"}, To: "open", ExpectVersion: at(v), Event: "touch"})
				return err
			})
			e.equal("won", won, 1)
			for _, err := range lost {
				e.moved(err, v, v+1)
			}
		}
		e.equal("version", e.entity("i").Version, 10)
	}},
}
