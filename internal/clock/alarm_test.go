package clock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errSpent = errors.New("spent")

// ended waits for the end of a context and checks its time, error and cause.
func ended(t *testing.T, ctx context.Context, after time.Duration, begun time.Time, err, cause error) {
	t.Helper()
	<-ctx.Done()
	if took := time.Since(begun); took != after {
		t.Errorf("context ended after %s, want %s", took, after)
	}
	if !errors.Is(ctx.Err(), err) || context.Cause(ctx) != cause {
		t.Errorf("context ended with %v, cause %v, want %v, cause %v", ctx.Err(), context.Cause(ctx), err, cause)
	}
}

// TestAlarm verifies that each call ends at its own deadline with its own cause, in whatever order the calls
// begin.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Alarm
		begun := time.Now()
		var work sync.WaitGroup
		for _, d := range rand.Perm(50) {
			d := time.Duration(d+1) * time.Second
			ctx, cancel := a.Within(t.Context(), d, errSpent)
			if by, ok := ctx.Deadline(); !ok || by.Sub(begun) != d {
				t.Errorf("got deadline %v", by)
			}
			work.Go(func() {
				defer cancel()
				if d%(3*time.Second) == 0 { // this call ends before its deadline
					<-time.After(d / 2)
					cancel()
					ended(t, ctx, d/2, begun, context.Canceled, context.Canceled)
					return
				}
				ended(t, ctx, d, begun, context.DeadlineExceeded, errSpent)
			})
		}
		work.Wait()
		if len(a.calls) != 0 {
			t.Errorf("%d calls are left, want 0", len(a.calls))
		}
	})
}

// TestAlarmOfOthers verifies that a context ends with its parent, and derived contexts with it; and that a nil
// cause means that the deadline passed.
func TestAlarmOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Alarm
		begun := time.Now()
		parent, stop := context.WithCancelCause(t.Context())
		ctx, cancel := a.Within(parent, time.Minute, errSpent)
		defer cancel()
		stop(errors.ErrUnsupported)
		ended(t, ctx, 0, begun, context.Canceled, errors.ErrUnsupported)

		parent, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if ctx, cancel = a.Within(parent, time.Minute, errSpent); true {
			defer cancel()
		}
		if by, _ := ctx.Deadline(); by.Sub(begun) != time.Second {
			t.Errorf("got deadline %v, want it after one second", by)
		}
		ended(t, ctx, time.Second, begun, context.DeadlineExceeded, context.DeadlineExceeded)

		begun = time.Now()
		ctx, cancel = a.Within(t.Context(), time.Second, nil)
		defer cancel()
		child, last := context.WithTimeout(context.WithValue(ctx, &a, 1), time.Hour)
		defer last()
		ended(t, ctx, time.Second, begun, context.DeadlineExceeded, context.DeadlineExceeded)
		ended(t, child, time.Second, begun, context.Canceled, context.DeadlineExceeded)
	})
}

// TestAlarmIsSetSeldom verifies that calls that end before their deadline do not reset the timer.
func TestAlarmIsSetSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Alarm
		var set []time.Time
		for range 100 {
			_, cancel := a.Within(t.Context(), 30*time.Second, nil)
			a.mu.Lock()
			if len(set) == 0 || !a.set.Equal(set[len(set)-1]) {
				set = append(set, a.set)
			}
			a.mu.Unlock()
			<-time.After(time.Second)
			cancel()
		}
		if len(set) != 4 { // in a hundred seconds
			t.Errorf("timer was set %d times, want 4: %v", len(set), set)
		}
	})
}
