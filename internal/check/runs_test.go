package check_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// TestPlantedViolationsOfRuns verifies that the check finds nothing in a finished run and in one with a step in progress
// that has an effect, and that it detects every kind of damage to them.
func TestPlantedViolationsOfRuns(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.startRun("over")
		s.startRun("under way")
		for name, c := range map[string][3]string{
			"a version without its event": {"UPDATE holdfast_run SET version = version + 1 WHERE key = 'over'", "UPDATE holdfast_run SET version = version - 1 WHERE key = 'over'", "the last event is at"},
			"an event that is gone": {"UPDATE holdfast_history SET stream = '$run/x' WHERE version = 1 AND stream IN (SELECT '$run/' || id FROM holdfast_run WHERE key = 'over')",
				"UPDATE holdfast_history SET stream = (SELECT '$run/' || id FROM holdfast_run WHERE key = 'over') WHERE stream = '$run/x'", "versions are missing"},
			"a current step that does not exist": {"UPDATE holdfast_run SET visit = 7 WHERE key = 'over'", "UPDATE holdfast_run SET visit = 1 WHERE key = 'over'", "not the current step"},
			"an open step that is not current":   {"UPDATE holdfast_run SET step = 'b' WHERE key = 'under way'", "UPDATE holdfast_run SET step = 'a' WHERE key = 'under way'", "not the current step"},
			"an end with something to do": {"UPDATE holdfast_run SET status = 'CANCELLED', finished_at = created_at WHERE key = 'under way'",
				"UPDATE holdfast_run SET status = 'RUNNING', finished_at = NULL WHERE key = 'under way'", "the status is final"},
			"a step that nobody resumes": {"UPDATE holdfast_step SET deadline = until, holder = NULL, until = NULL WHERE status = 'RUNNING'",
				"UPDATE holdfast_step SET holder = 'me', until = deadline, deadline = NULL WHERE status = 'RUNNING'", "nothing will resume"},
			"a pause with a due step": {"UPDATE holdfast_run SET status = 'PAUSED' WHERE key = 'under way'; UPDATE holdfast_step SET deadline = until, due_at = until, holder = NULL, until = NULL WHERE status = 'RUNNING'",
				"UPDATE holdfast_run SET status = 'RUNNING' WHERE key = 'under way'; UPDATE holdfast_step SET holder = 'me', until = deadline, due_at = NULL, deadline = NULL WHERE status = 'RUNNING'", "one of its steps is due"},
			"a signal that is not taken": {`UPDATE holdfast_step SET status = 'WAITING', deadline = until, signal = 't', holder = NULL, until = NULL, due_at = until WHERE status = 'RUNNING';
				INSERT INTO holdfast_signal (shard, workspace, run, id, n, type, payload, at) SELECT shard, workspace, id, 'g', 1, 't', '1', created_at FROM holdfast_run WHERE key = 'under way'`,
				"DELETE FROM holdfast_signal; UPDATE holdfast_step SET status = 'RUNNING', holder = 'me', until = deadline, due_at = NULL, deadline = NULL, signal = NULL WHERE status = 'WAITING'", "has already arrived"},
			"an effect that the journal has not": {"UPDATE holdfast_step SET begun = 1 WHERE name = 'b'", "UPDATE holdfast_step SET begun = 0 WHERE name = 'b'", "does not match the journal"},
			"an effect of another step":          {"UPDATE holdfast_effect SET operation = replace(operation, '/a/', '/b/')", "UPDATE holdfast_effect SET operation = replace(operation, '/b/', '/a/')", "does not match the journal"},
			"an effect that did not happen":      {"UPDATE holdfast_effect SET state = 'notDone'", "UPDATE holdfast_effect SET state = 'done'", "does not match the journal"},
		} {
			s.exec(c[0])
			if r := s.check(); len(r.Violations) != 1 || !strings.Contains(r.String(), c[2]) {
				s.Errorf("%s: got %d violations, want one that contains %q:\n%s", name, len(r.Violations), c[2], r)
			}
			s.exec(c[1])
		}
		if r := s.check(); !r.Clean() || r.Checked["runs"] != 2 {
			s.Errorf("checked %v, violations:\n%s", r.Checked, r)
		}
	})
}

// startRun starts a run of two steps. The run "over" completes both; another one stays in its first step, with an effect.
func (s *scene) startRun(key string) {
	s.Helper()
	d := &workflow.Definition{Name: "two", Version: "1"}
	for _, name := range []string{"a", "b"} {
		d.Steps = append(d.Steps, workflow.Step{Name: name, Type: workflow.Task, Handler: name, Safety: "idempotent"})
	}
	anyone := func(string) (runengine.Handled, bool) { return runengine.Handled{Safety: "idempotent"}, true }
	ctx, e := context.Background(), new(runengine.Executor)
	l, _, err := e.Start(ctx, engine.Of(s.hf), runengine.Start{Declared: d, Input: []byte(`{}`), Key: key, Holder: "me", Lease: time.Hour, Local: anyone})
	for err == nil && key == "over" && l.Taken() {
		l, err = e.Complete(ctx, engine.Of(s.hf), &l, runengine.Ended{Output: []byte(`{}`), Holder: "me", Lease: time.Hour, Local: anyone})
	}
	if err != nil {
		s.Fatal(err)
	}
	if key != "over" {
		s.exec(`UPDATE holdfast_step SET begun = 1 WHERE status = 'RUNNING';
			INSERT INTO holdfast_effect (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at, ended_at)
			SELECT shard, workspace, run || '/' || name || '/' || visit, 'x', 0, 1, 'done', 'hold', created_at, created_at FROM holdfast_step WHERE status = 'RUNNING'`)
	}
}
