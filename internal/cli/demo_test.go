package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/demo"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

// TestDemoThatLiesFails runs the demo while something else records a charge and a mail. The
// demo must fail with exit code 1 and report both.
func TestDemoThatLiesFails(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Chdir(t.TempDir())
	self, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	var engine *holdfast.Engine
	p := newProgram(os.Environ(), onReady(func(text string) error {
		if strings.Contains(text, "3 payments") {
			if err := addForgedRecords(holdfast.InWorkspace(t.Context(), demo.Workspace), engine); err != nil {
				t.Error(err)
			}
		}
		return nil
	}), io.Discard)
	db := databaseFlags{DB: "a.db", Schema: "holdfast"}
	d := demo.New(p.stdout, demoCallers(p.env, db, self))
	s := server{program: p, databaseFlags: db, serverFlags: serverFlags{Listen: "127.0.0.1:0"}, parts: d.Parts(), sweepEvery: demo.Sweep,
		afterReady: func(ctx context.Context, e *holdfast.Engine, _ string) error {
			engine = e
			if err := d.Tell(ctx, demo.Place{}); err != nil {
				return err
			}
			return errors.New("the demo found no difference")
		}}
	err = s.run(t.Context())
	if exitCode(err) != 1 {
		t.Fatalf("got error %v", err)
	}
	for _, want := range []string{"the demo found differences", "charges: 2 observed, but 3 recorded", "an unexpected mail"} {
		if !strings.Contains(message(err), want) {
			t.Errorf("got error %s, want it to contain %q", message(err), want)
		}
	}
}

// addForgedRecords appends a charge and a mail that the demo did not make.
func addForgedRecords(ctx context.Context, e *holdfast.Engine) error {
	run := ""
	for s, err := range stream.List(ctx, e, stream.Filter{Prefix: "mail-"}) {
		if err != nil {
			return err
		}
		run = strings.TrimPrefix(s.Name, "mail-")
	}
	charge := fmt.Appendf(nil, `{"key": "none", "cents": 1, "receipt": "R99"}`)
	if _, err := stream.Append(ctx, e, "gateway-"+run, stream.Any, stream.Event{Name: "charged", Data: charge}); err != nil {
		return err
	}
	mail := fmt.Appendf(nil, `{"invoice": "%s-01", "operation": "none"}`, run)
	_, err := stream.Append(ctx, e, "mail-"+run, stream.Any, stream.Event{Name: "sent", Data: mail})
	return err
}

// A caller that exits before it can be killed is an error with the output of the caller.
func TestDemoCallerFails(t *testing.T) {
	self, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	c := demoCallers(nil, databaseFlags{DB: "sqlite:" + t.TempDir() + "/none.db", Schema: "holdfast"}, self)
	err = c.Killed(t.Context(), "close", "1", "admin 1")
	if err == nil || !strings.Contains(err.Error(), "was not killed during the action") || !strings.Contains(err.Error(), "DATABASE_TOO_OLD") {
		t.Errorf("got error %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := c.Killed(stopped, "close", "1", "admin 1"); err == nil {
		t.Error("the caller was started after the stop")
	}
}
