package streamclose_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

var ctx = context.Background()

func onSQLite(t *testing.T) bool { return strings.HasSuffix(t.Name(), "/sqlite") }

// times are columns that SQLite stores as numbers.
var times = regexp.MustCompile(`\bNOW\b`)

// exec runs a statement in SQLite's dialect on Holdfast's tables, and returns the number
// of affected rows.
func exec(t *testing.T, hf *holdfast.Engine, query string) (n int64) {
	t.Helper()
	now := "now()"
	if onSQLite(t) {
		now = fmt.Sprint(clock.Now().UnixMilli())
	}
	err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) (err error) {
		n, err = storetest.Exec(ctx, tx, times.ReplaceAllString(query, now))
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// rows counts the rows of a table that belong to a stream, without changing them.
func rows(t *testing.T, hf *holdfast.Engine, table, name string) int64 {
	t.Helper()
	undo := errors.New("undo")
	var n int64
	err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		query := fmt.Sprintf(`SELECT count(*) FROM holdfast_%s WHERE workspace = 'default' AND stream = '%s'`, table, name)
		counts, err := storetest.Column[int64](ctx, tx, query)
		if err == nil {
			n = counts[0]
		}
		return errors.Join(undo, err)
	})
	if !errors.Is(err, undo) || strings.Count(err.Error(), "\n") > 0 {
		t.Fatal(err)
	}
	return n
}

// register inserts a reaction, as a registration does.
func register(t *testing.T, hf *holdfast.Engine, name, events, streams, state string) {
	t.Helper()
	exec(t, hf, fmt.Sprintf(`INSERT INTO holdfast_reaction
		(shard, workspace, name, source, events, streams, options, max_deaths, priority, base, state, waits, created_at, updated_at)
		VALUES (0, 'default', '%s', 'event', '%s', '%s', '{}', 5, 0, 0, '%s', '[]', NOW, NOW)`, name, events, streams, state))
	exec(t, hf, `INSERT INTO holdfast_registry (shard, workspace, revision) VALUES (0, 'default', 1)
		ON CONFLICT (shard, workspace) DO UPDATE SET revision = holdfast_registry.revision + 1`)
}

// follow inserts the position of a reaction on a stream; more are columns with their
// values.
func follow(t *testing.T, hf *holdfast.Engine, reaction, name string, watermark, due int, more string) {
	t.Helper()
	exec(t, hf, fmt.Sprintf(`DELETE FROM holdfast_follow WHERE workspace = 'default' AND reaction = '%s' AND stream = '%s'`, reaction, name))
	if !onSQLite(t) {
		exec(t, hf, fmt.Sprintf(`DELETE FROM holdfast_due WHERE workspace = 'default' AND reaction = '%s' AND stream = '%s'`, reaction, name))
	}
	columns, values := "", ""
	if column, value, ok := strings.Cut(more, "="); ok {
		columns, values = ", "+column, ", "+value
	}
	exec(t, hf, fmt.Sprintf(`INSERT INTO holdfast_follow
		(shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at%s)
		VALUES (0, 'default', '%s', '%s', %d, %d, NOW, NOW, 1, NOW%s)`, columns, reaction, name, watermark, due, values))
}

func add(t *testing.T, d holdfast.Doer, name string, n int) {
	t.Helper()
	for i := range n {
		if _, err := stream.Append(ctx, d, name, stream.Any, stream.Event{Name: "a", Data: fmt.Appendf(nil, "%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
}

// refused fails a test unless an error has the code and contains the texts.
func refused(t *testing.T, err error, code fault.Code, parts ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("got error %v, want code %s", err, code)
		return
	}
	for _, what := range parts {
		if !strings.Contains(err.Error(), what) {
			t.Errorf("error %v does not contain %q", err, what)
		}
	}
}

func field(err error, name string) any {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Fields[name]
	}
	return nil
}

// versions returns the versions of the readable events, with their names.
func versions(t *testing.T, hf *holdfast.Engine, name string) string {
	t.Helper()
	all, err := holdfast.Collect(stream.Read(ctx, hf, name, 0))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range all {
		texts = append(texts, fmt.Sprintf("%d:%s", e.Version, e.Name))
	}
	return strings.Join(texts, " ")
}

// reads fails a test unless a stream has exactly these events.
func reads(t *testing.T, hf *holdfast.Engine, name, want string) {
	t.Helper()
	if got := versions(t, hf, name); got != want {
		t.Errorf("%s has versions %q, want %q", name, got, want)
	}
}

// closeAt closes a stream; a restart covers the current version.
func closeAt(hf *holdfast.Engine, name string, mode streamclose.Mode, export func(context.Context, int64, int64) error) (streamclose.Closed, error) {
	a := streamclose.Args{Stream: name, Mode: mode, Export: export}
	if mode == streamclose.Restart {
		last, err := testkit.First(1, stream.ReadBackward(ctx, hf, name, stream.Any))
		if err != nil || len(last) == 0 {
			return streamclose.Closed{}, errors.Join(err, errors.New("the stream has no events"))
		}
		a.Snapshot, a.ExpectVersion = []byte(`{"sum":1}`), new(int64(last[0].Version))
	}
	return streamclose.Close(ctx, engine.Of(hf), a)
}

// restart restarts a stream from a snapshot that covers a version.
func restart(hf *holdfast.Engine, name string, version int64, snapshot string) (streamclose.Closed, error) {
	return streamclose.Close(ctx, engine.Of(hf), streamclose.Args{Stream: name, Mode: streamclose.Restart, ExpectVersion: &version, Snapshot: []byte(snapshot)})
}
