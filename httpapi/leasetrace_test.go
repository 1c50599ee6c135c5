package httpapi_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// debugLog collects the log at level debug.
type debugLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends a line.
func (l *debugLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *debugLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestTheLeasesOfReactionsAreTraced verifies that each step of a reaction's lease is counted, and logged at level debug,
// with the same word, whoever serves the reaction: a program, a worker, or a client that claims by hand.
func TestTheLeasesOfReactionsAreTraced(t *testing.T) {
	log := new(debugLog)
	o := elsewhere
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	prog := stream.React("prog", stream.Select{Events: []string{"p"}}, func(context.Context, *stream.Delivery) error { return nil }, stream.Options{})
	eachTestAPI(t, o, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Work", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/hand", wire.PutReaction{Events: []string{"n"}, MaxRetries: new(1)}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/work", wire.PutReaction{Events: []string{"n"}, Handler: "Work"}, nil), 201, "")
		d.append("s", 1) // an event named n

		fail := func() {
			l := d.lease("hand", 1)[0]
			d.want(d.ask("POST", "reactions/hand/fail", wire.FailLease{Stream: "s", Epoch: l.Epoch, Token: l.Token, Message: "no"}, nil), 200, "")
			d.advance(1 << 40)
		}
		fail()
		d.wantMetrics(`holdfast_reaction_streams_total{kind="reaction",what="claimed"} 1`, `holdfast_reaction_streams_total{kind="reaction",what="failed"} 1`)
		fail() // blocks it
		d.want(d.ask("POST", "reactions/hand/unblock", `{}`, nil), 200, "")
		if told := d.ack("hand", d.lease("hand", 1)[0], 0); told != "acked" {
			t.Errorf("ack: got %s", told)
		}
		var got wire.Tasks
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Work"}, Limit: 1}, &got), 200, "")
		task := got.Tasks[0]
		d.want(d.ask("POST", "tasks/"+task.ID+"/complete", wire.CompleteTask{Epoch: task.Epoch}, nil), 200, "")
		d.wantMetrics(`holdfast_reaction_streams_total{kind="reaction",what="claimed"} 4`, `holdfast_reaction_streams_total{kind="reaction",what="acked"} 2`,
			`holdfast_reaction_streams_total{kind="reaction",what="failed"} 1`, `holdfast_reaction_streams_total{kind="reaction",what="blocked"} 1`)
		for _, line := range []string{
			`level=DEBUG msg="reaction lease claimed" workspace=default reaction=hand stream=s version=-1 epoch=`,
			`level=DEBUG msg="reaction lease failed" workspace=default reaction=hand stream=s version=-1 epoch=`,
			`level=DEBUG msg="reaction lease blocked" workspace=default reaction=hand stream=s version=-1 epoch=`,
			`level=DEBUG msg="reaction lease acked" workspace=default reaction=hand stream=s version=0 epoch=`,
			`level=DEBUG msg="reaction lease claimed" workspace=default reaction=work stream=s version=-1 epoch=`,
			`level=DEBUG msg="reaction lease acked" workspace=default reaction=work stream=s version=0 epoch=`,
		} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("the log lacks %s:\n%s", line, log)
			}
		}
		d.running()
		d.want(d.ask("POST", "streams/p/events", wire.Append{Events: []wire.NewEvent{{Name: "p"}}}, nil), 201, "")
		testkit.Eventually(t, "the program has acknowledged", func() bool {
			return reactions.TalliesOf(engine.Of(d.engine)).All()[reactions.Tally{What: "acked", Kind: "reaction"}] == 3
		})
		d.wantMetrics(`holdfast_reaction_streams_total{kind="reaction",what="claimed"} 5`, `holdfast_reaction_streams_total{kind="reaction",what="acked"} 3`)
	}, prog)
}
