package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// bouncer starts PgBouncer in transaction mode before a fresh database.
func bouncer(t *testing.T) (direct, through string) {
	t.Helper()
	direct = fresh(t)
	through, stop, err := pgtest.Bouncer(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return direct, through
}

// TestAnEngineWorksBehindPgBouncer verifies that an engine works behind PgBouncer in transaction
// mode, declared by an option or by its URL: it migrates, every verb works, alone, in an update and
// in a joined transaction, and sixteen callers with thousands of mixed commands get no error
// although they share ten sessions.
func TestAnEngineWorksBehindPgBouncer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		param []string
		with  []postgres.Option
	}{
		{"by option", nil, []postgres.Option{postgres.Pooled()}},
		{"by URL", []string{"default_query_exec_mode=cache_describe"}, nil},
		{"by URL, exec", []string{"default_query_exec_mode=exec"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.with == nil {
				testlevel.Long(t)
			}
			_, through := bouncer(t)
			url := as(t, through, "", "", c.param...)
			hf := openEngine(t, postgres.URL(url, c.with...))
			if err := useEverything(t.Context(), hf, "alone"); err != nil {
				t.Error(err)
			}
			err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error { return useEverything(ctx, tx, "update") })
			if err != nil {
				t.Error(err)
			}
			joinBehind(t, hf, as(t, through, "", "", "default_query_exec_mode=cache_describe"))
			mixed(t, hf, 16, testlevel.Pick(10, 200, 2000))
		})
	}
}

func joinBehind(t *testing.T, hf *holdfast.Engine, url string) {
	t.Helper()
	tx, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	j, err := postgres.Join(hf, tx)
	if err != nil {
		t.Fatal(err)
	}
	if err := useEverything(t.Context(), j, "joined"); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if names := wantGapless(t, hf, "joined"); len(names) != 3 {
		t.Errorf("joined transaction wrote %v, want 3 events", names)
	}
}

// mixed makes callers run commands of every kind on shared objects, and checks the sums at the end.
func mixed(t *testing.T, hf *holdfast.Engine, callers, commands int) {
	t.Helper()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range commands {
				if err := oneOf(t.Context(), hf, caller, i); err != nil {
					t.Errorf("caller %d, command %d: %v (%v)", caller, i, err, errors.Unwrap(err))
					return
				}
			}
		})
	}
	wg.Wait()
	every := callers * commands / 5
	if names := wantGapless(t, hf, "mixed"); len(names) != every {
		t.Errorf("got %d events, want %d", len(names), every)
	}
	if s, err := storetest.Inc(t.Context(), hf, storetest.IncArgs{Kind: "sum", ID: "mixed", Field: "n"}); err != nil || s.Value != int64(every) {
		t.Errorf("got sum %d, want %d: %v", s.Value, every, err)
	}
}

func oneOf(ctx context.Context, hf *holdfast.Engine, caller, i int) (err error) {
	own := fmt.Sprintf("c%d-%d", caller, i)
	switch i % 5 {
	case 0:
		_, err = stream.Append(ctx, hf, "mixed", stream.Any, event(own))
	case 1:
		_, err = storetest.Inc(ctx, hf, storetest.IncArgs{Kind: "sum", ID: "mixed", Field: "n", By: 1})
	case 2:
		_, err = entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "thing", ID: own, Status: "new"})
	case 3:
		_, err = holdfast.Collect(stream.Read(ctx, hf, "mixed", 0))
	case 4:
		err = hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			if _, err := stream.Append(ctx, tx, own, stream.None, event("a")); err != nil {
				return err
			}
			_, err := scopestore.Put(ctx, store.DoerOf(tx), scopestore.PutArgs{Kind: "box", ID: own, State: []byte(`{}`)})
			return err
		})
	}
	return err
}

// TestAForgottenPoolerIsNamedInTheError verifies that an engine without the pooler option either
// works all the same or returns an error that names it, within a moment.
func TestAForgottenPoolerIsNamedInTheError(t *testing.T) {
	t.Parallel()
	_, through := bouncer(t)
	hf, err := holdfast.Open(t.Context(), postgres.URL(through), quiet)
	if err == nil {
		defer hf.Close()
		mixed(t, hf, 4, 50)
		return
	}
	t.Log(err, errors.Unwrap(err))
	for _, hint := range []string{"PgBouncer", "cache_describe"} {
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("error lacks %q: %v (%v)", hint, err, errors.Unwrap(err))
		}
	}
}

// TestAServerThatIsDownBehindAPooler verifies that a pooler without its server is an outage and not a mistake in the URL:
// PgBouncer has the same SQLSTATE for both.
func TestAServerThatIsDownBehindAPooler(t *testing.T) {
	t.Parallel()
	testlevel.Long(t)
	server := cluster(t)
	through, stop, err := pgtest.Bouncer(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	through = as(t, through, "", "", "target_session_attrs=read-write") // a query in each new connection
	hf := openEngine(t, postgres.URL(through, postgres.Pooled()))
	if err := server.Stop("fast"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the pooler refuses connections", func() bool { // the first one waits
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := pgx.Connect(ctx, through)
		return err != nil && strings.Contains(err.Error(), "08P01")
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = holdfast.Collect(stream.Read(ctx, hf, "s", 0))
	testkit.WantCode(t, err, fault.Unavailable)
}

// TestAnotherIsolationIsRefusedBehindAPooler verifies that behind a pooler, where the role has the
// session's settings, a role whose transactions are not "read committed" is refused with an error
// that explains how to set it; and that without a pooler the engine sets it itself.
func TestAnotherIsolationIsRefusedBehindAPooler(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	role := newRole(t, url, "LOGIN SUPERUSER")
	execute(t, connect(t, url), "ALTER ROLE "+role+" SET default_transaction_isolation = 'repeatable read'")
	err := openError(t, postgres.URL(as(t, url, role, ""), postgres.Pooled()), quiet)
	testkit.WantCode(t, err, "VALIDATION_ERROR", "repeatable read", "read committed", "ALTER ROLE")
	hf := openEngine(t, postgres.URL(as(t, url, role, "")))
	if err := useEverything(t.Context(), hf, "direct"); err != nil {
		t.Error(err)
	}
}
