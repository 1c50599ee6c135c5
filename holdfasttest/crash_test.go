package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// TestCrash verifies that a request which names what it expects to find, and is
// repeated until it is done, is done once, wherever a fault strikes, and wherever
// a second one strikes while the first is recovered from.
func TestCrash(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do:      closeInvoice,
		Accepts: []error{holdfast.ErrInvalidTransition},
		Check:   closedOnce,
		Pairs:   true,
	})
}

// closeInvoice creates an invoice and closes it: its status, its event
// and the count of closed ones are one transaction.
func closeInvoice(ctx context.Context, hf *holdfast.Engine) error {
	_, err := entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "invoice", ID: "i", Status: "open"})
	if err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return err
	}
	return hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := entities.Transition(ctx, store.DoerOf(tx), entities.TransitionArgs{
			Lifecycle: "invoice", ID: "i", From: []string{"open"}, To: "closed", ExpectVersion: new(int64), Event: "closed"})
		if err != nil {
			return err
		}
		if _, err = stream.Append(ctx, tx, "closings", stream.None, stream.Event{Name: "closed"}); err != nil {
			return err
		}
		_, err = storetest.Inc(ctx, tx, storetest.IncArgs{Kind: "org", ID: "o", Field: "closed", By: 1})
		return err
	})
}

func closedOnce(ctx context.Context, hf *holdfast.Engine) error {
	e, err := entities.Get(ctx, engine.Of(hf), "invoice", "i")
	if err != nil {
		return err
	}
	all, err := holdfast.Collect(stream.Read(ctx, hf, "closings", 0))
	if err != nil {
		return err
	}
	s, err := scopestore.Get(ctx, engine.Of(hf), "org", "o")
	if err != nil {
		return err
	}
	got := fmt.Sprintf("%s at %d, %d events, %s at %d", e.Status, e.Version, len(all), strings.ReplaceAll(string(s.State), " ", ""), s.Version)
	if want := `closed at 1, 1 events, {"closed":1} at 0`; got != want {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}

// planted are scenarios with one bug each, and the expected report of the driver.
var planted = map[string]struct {
	holdfasttest.Scenario
	says string
}{
	"marker apart": {holdfasttest.Scenario{Do: payMarkedApart, Check: paidOnce}, "0 payments, want 1"},
	"blind retry":  {holdfasttest.Scenario{Do: countBlindly, Check: countedOnce}, "counted 2 times, want 1"},
	"leaves":       {holdfasttest.Scenario{Do: leaveIfPaid, Check: paidOnce}, "the scenario ended its goroutine"},
	"two at once":  {holdfasttest.Scenario{Do: payTwiceSafe, Check: paidOnce, Pairs: true}, "2 payments, want 1"},
}

// payMarkedApart commits the marker and the payment one after the other: after a crash
// between them only the marker is stored.
func payMarkedApart(ctx context.Context, hf *holdfast.Engine) error {
	_, err := scopestore.Put(ctx, engine.Of(hf), scopestore.PutArgs{Kind: "order", ID: "o", ExpectVersion: new(events.None), State: []byte(`{"paid":true}`)})
	if errors.Is(err, holdfast.ErrConcurrency) {
		return nil
	}
	if err == nil {
		_, err = stream.Append(ctx, hf, "payments", stream.Any, stream.Event{Name: "paid"})
	}
	return err
}

// leaveIfPaid ends its goroutine, as t.Fatal does, if there is a payment already.
func leaveIfPaid(ctx context.Context, hf *holdfast.Engine) error {
	_, err := stream.Append(ctx, hf, "payments", stream.None, stream.Event{Name: "paid"})
	if errors.Is(err, holdfast.ErrConcurrency) {
		runtime.Goexit()
	}
	return err
}

// payTwiceSafe checks for a payment before it pays again, but not the third
// time: it survives one fault, not two.
func payTwiceSafe(ctx context.Context, hf *holdfast.Engine) error {
	tries, err := stream.Append(ctx, hf, "tries", stream.Any, stream.Event{Name: "try"})
	if err != nil {
		return err
	}
	want := stream.None
	if tries > 1 {
		want = stream.Any
	}
	_, err = stream.Append(ctx, hf, "payments", want, stream.Event{Name: "paid"})
	if errors.Is(err, holdfast.ErrConcurrency) {
		return nil
	}
	return err
}

func paidOnce(ctx context.Context, hf *holdfast.Engine) error {
	all, err := holdfast.Collect(stream.Read(ctx, hf, "payments", 0))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d payments, want 1", len(all))
	}
	return err
}

func countBlindly(ctx context.Context, hf *holdfast.Engine) error {
	_, err := storetest.Inc(ctx, hf, storetest.IncArgs{Kind: "org", ID: "o", Field: "n", By: 1})
	return err
}

func countedOnce(ctx context.Context, hf *holdfast.Engine) error {
	all, err := holdfast.Collect(stream.Read(ctx, hf, scopestore.Stream("org", "o"), 0))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("counted %d times, want 1", len(all))
	}
	return err
}

const plantedVar = "HOLDFAST_TEST_PLANTED" // set in the process that runs the bugs

// TestCrashFindsPlantedBugs verifies that the driver finds each planted bug on
// each database that it runs it on, and that the command it prints replays the
// very same failure. Both run in processes of their own, because they fail.
func TestCrashFindsPlantedBugs(t *testing.T) {
	testlevel.OneGoroutine(t)
	for name, p := range planted {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(plantedVar) != "" {
				holdfasttest.Crash(t, p.Scenario)
				return
			}
			t.Parallel()
			databases := []string{"sqlite", "postgres"}
			if p.Pairs {
				databases = databases[:1] // pairs are for SQLite
			} else if testlevel.Current() == testlevel.Test {
				databases = testlevel.OneDatabase(t)
			}
			for _, db := range databases {
				findsAndReplays(t, db, p.says)
			}
		})
	}
}

var (
	replayLine = regexp.MustCompile(`(?m)^\s*replay: HOLDFAST_CRASH_CASE='([^']+)' go test -count=1 (\S+) -run '([^']+)'$`)
	failedCase = regexp.MustCompile(`(?m)case (\S+): (.*)$`)
)

func findsAndReplays(t *testing.T, db, says string) {
	t.Helper()
	// The name in t.Name is as -run wants it, but for the characters of a regexp.
	out := failing(t, "^"+strings.Join(strings.Split(t.Name(), "/"), "$/^")+"$/^"+db+"$", "")
	found := failedCase.FindStringSubmatch(out)
	replay := replayLine.FindStringSubmatch(out)
	if found == nil || replay == nil || !strings.Contains(found[2], says) {
		t.Fatalf("%s: did not find %q, or printed no replay command:\n%s", db, says, out)
	}
	if want := "github.com/holdfast-go/holdfast/holdfasttest"; replay[2] != want || replay[1] != found[1] {
		t.Errorf("replay command is for %s in %s, want %s in %s", replay[1], replay[2], found[1], want)
	}
	again := failing(t, replay[3], replay[1])
	if only := failedCase.FindAllStringSubmatch(again, -1); len(only) != 1 || only[0][0] != found[0] {
		t.Errorf("the replay reports %v, want %q:\n%s", only, found[0], again)
	}
	t.Logf("%s: %s", db, found[0])
}

// failing runs tests of this program that must fail, and returns their output.
func failing(t *testing.T, run, only string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run="+run)
	cmd.Env = append(os.Environ(), plantedVar+"=1", testlevel.LevelVar+"=crash", "HOLDFAST_CRASH_CASE="+only)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "--- FAIL") {
		t.Fatalf("%s %s did not fail (%v):\n%s", run, only, err, out)
	}
	return string(out)
}
