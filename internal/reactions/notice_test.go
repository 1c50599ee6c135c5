package reactions_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// TestBlocksAndReleasesAreNoticed verifies that a blocked stream and a released one are
// logged with reaction, stream and error and counted by kind, once per commit, and that
// a repair which is rolled back is not.
func TestBlocksAndReleasesAreNoticed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		var log bytes.Buffer // written by this goroutine only
		hf, err := holdfast.Open(t.Context(), s.database(), holdfast.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer hf.Close()
		const name = "$after:bill:Mail"
		register(t, hf, define(name, "^s$"))
		appendTo(t, hf, "s", "a", "b")
		blockAt(t, hf, one(t, hf, name), 1)
		undone := errors.New("undone")
		err = hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			touched, _, err := reactions.Repair(ctx, store.DoerOf(tx), "unblock", "", reactions.Filter{Reaction: name})
			if len(touched) != 1 {
				t.Errorf("unblock touched %+v, want 1 position", touched)
			}
			return errors.Join(err, undone)
		})
		if !errors.Is(err, undone) {
			t.Error(err)
		}
		if strings.Contains(log.String(), "released") {
			t.Errorf("a rolled back repair was logged:\n%s", &log)
		}
		repair(t, hf, "unblock", reactions.Filter{Reaction: name})
		repair(t, hf, "reset", reactions.Filter{Reaction: name})
		for _, line := range []string{
			`level=ERROR msg="reaction blocked on a stream; unblock or reset the stream, or skip the event" workspace=default reaction=$after:bill:Mail stream=s version=1 error=no`,
			`level=INFO msg="reaction resumed after a repair" outcome=unblocked workspace=default reaction=$after:bill:Mail stream=s`,
			`level=INFO msg="reaction resumed after a repair" outcome=reset workspace=default reaction=$after:bill:Mail stream=s`,
		} {
			if strings.Count(log.String(), line) != 1 {
				t.Errorf("log has no line %s:\n%s", line, &log)
			}
		}
		got := reactions.TalliesOf(engine.Of(hf)).All()
		for _, what := range []string{"blocked", "unblocked", "reset"} {
			if n := got[reactions.Tally{What: what, Kind: "afterEffect"}]; n != 1 {
				t.Errorf("%s was counted %d times: %v", what, n, got)
			}
		}
	})
}
