package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// What a process says to the one that started it.
const (
	acting   = "acting"
	resuming = "resuming"
	weary    = "resuming, once more"

	readyWord = "ready"
	answered  = "answered: " // what the answers begin with
	didIt     = answered + "did it"
	tooLate   = answered + "too late"
	refused   = answered + "another is at it"
)

var saying sync.Mutex

func say(word string) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(word)
}

// Danger marks a moment in an action: the process may be killed here, or soon after.
func (s *Stage) Danger(moment string) { say(moment) }

// Begin marks the begin of an action. What has killed five of its processes, Holdfast
// takes to be what kills them, and lets it wait for a person. So that nobody has to
// play one, the killing stops long before that.
func (s *Stage) Begin(attempt int) {
	switch {
	case attempt == 1:
		s.Danger(acting)
	case attempt < 3:
		s.Danger(resuming)
	default:
		s.Danger(weary)
	}
}

// node is one of the processes.
func (s *Stage) node(ctx context.Context, ids []string, f func(context.Context, *Stage, []string) error) (code int, err error) {
	s.begin = make(chan struct{})
	go s.listen()
	if err := f(ctx, s, ids); err != nil {
		return 1, err
	}
	return 0, nil
}

// listen waits for the word to begin, and ends this process with the one that
// started it.
func (s *Stage) listen() {
	in := bufio.NewScanner(os.Stdin)
	if in.Scan() {
		close(s.begin)
	}
	for in.Scan() {
	}
	os.Exit(1)
}

// Callers is this process's share of the callers. All of them ask for each id at
// once, and each asks until it knows that the thing is done, by itself or by another.
func (s *Stage) Callers(ctx context.Context, ids []string, ask func(ctx context.Context, id string) error) error {
	say(readyWord)
	select {
	case <-s.begin:
	case <-ctx.Done():
		return ctx.Err()
	}
	var callers sync.WaitGroup
	errs := make([]error, len(ids)*Callers/Nodes)
	for i := range errs {
		callers.Go(func() { errs[i] = untilDone(ctx, ids[i%len(ids)], ask) })
	}
	callers.Wait()
	return errors.Join(errs...)
}

// untilDone asks until the answer is final. This is what the answers mean.
func untilDone(ctx context.Context, id string, ask func(ctx context.Context, id string) error) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 640*time.Millisecond) {
		err := ask(ctx, id)
		switch {
		case err == nil:
			say(didIt)
			return nil
		case errors.Is(err, holdfast.ErrInvalidTransition):
			// The step is not offered at the status that the thing has by now:
			// another has done it.
			say(tooLate)
			return nil
		case errors.Is(err, holdfast.ErrClaimFailed), errors.Is(err, holdfast.ErrConcurrency):
			// Another is at it, or was faster, and nothing was done. A program would
			// tell its user so; this one wants to see the end, for the other may be
			// dead.
			say(refused)
		case errors.Is(err, holdfast.ErrActionFailed), errors.Is(err, holdfast.ErrLeaseLost), errors.Is(err, holdfast.ErrOutcomeUnknown):
			// Ours was begun and is not done, as far as we know. It goes back, or
			// is resumed with the same keys, by whichever process lives. To ask
			// again is safe: that is the point.
		default:
			return fmt.Errorf("%s: %w", id, err)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%w)", id, ctx.Err(), err)
		}
	}
}

// OneIn draws a lot: it is true once in n times. Safe for concurrent use.
func (s *Stage) OneIn(n int) bool {
	s.draw.Lock()
	defer s.draw.Unlock()
	return s.random.IntN(n) == 0
}
