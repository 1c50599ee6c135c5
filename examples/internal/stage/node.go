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

// Messages that a child process prints for its parent.
const (
	acting    = "acting"
	resuming  = "resuming"
	exhausted = "resuming, once more" // from the third attempt on; the parent then kills no more

	readyMessage = "ready"
	result       = "result: " // prefix of the results of callers
	succeeded    = result + "succeeded"
	tooLate      = result + "too late"
	refused      = result + "refused"
)

var output sync.Mutex

// send prints a message for the parent process.
func send(message string) {
	output.Lock()
	defer output.Unlock()
	fmt.Println(message)
}

// Danger marks a point in an action at which the parent may kill the process.
func (s *Stage) Danger(moment string) { send(moment) }

// Begin marks the beginning of an action. After five crashes Holdfast assumes that the action
// causes them, and parks it for an operator. The parent stops killing long before that.
func (s *Stage) Begin(attempt int) {
	switch {
	case attempt == 1:
		s.Danger(acting)
	case attempt < 3:
		s.Danger(resuming)
	default:
		s.Danger(exhausted)
	}
}

// node runs one of the child processes.
func (s *Stage) node(ctx context.Context, ids []string, f func(context.Context, *Stage, []string) error) (code int, err error) {
	s.begin = make(chan struct{})
	go s.listen()
	if err := f(ctx, s, ids); err != nil {
		return 1, err
	}
	return 0, nil
}

// listen waits for the signal to begin, and exits when the parent process exits.
func (s *Stage) listen() {
	in := bufio.NewScanner(os.Stdin)
	if in.Scan() {
		close(s.begin)
	}
	for in.Scan() {
	}
	os.Exit(1)
}

// Callers runs this process's share of the callers. All of them fire the step for each id at
// once, and each retries until the step is done, by itself or by another caller.
func (s *Stage) Callers(ctx context.Context, ids []string, fire func(ctx context.Context, id string) error) error {
	send(readyMessage)
	select {
	case <-s.begin:
	case <-ctx.Done():
		return ctx.Err()
	}
	var callers sync.WaitGroup
	errs := make([]error, len(ids)*Callers/Nodes)
	for i := range errs {
		callers.Go(func() { errs[i] = untilDone(ctx, ids[i%len(ids)], fire) })
	}
	callers.Wait()
	return errors.Join(errs...)
}

// untilDone fires the step until the result is final. It shows how to handle each error.
func untilDone(ctx context.Context, id string, fire func(ctx context.Context, id string) error) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 640*time.Millisecond) {
		err := fire(ctx, id)
		switch {
		case err == nil:
			send(succeeded)
			return nil
		case errors.Is(err, holdfast.ErrInvalidTransition):
			// The current status does not have this step: another caller has done it.
			send(tooLate)
			return nil
		case errors.Is(err, holdfast.ErrClaimFailed), errors.Is(err, holdfast.ErrConcurrency):
			// Another caller has the claim or was faster, and this call did nothing. A
			// program would return that to its user. This one retries, because the other
			// caller may have crashed.
			send(refused)
		case errors.Is(err, holdfast.ErrActionFailed), errors.Is(err, holdfast.ErrLeaseLost), errors.Is(err, holdfast.ErrOutcomeUnknown):
			// This call started the step, and it may not be done. A running process
			// releases the claim or resumes the operation with the same keys. Firing
			// again is safe.
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

// OneIn returns true with a probability of 1/n. It is safe for concurrent use.
func (s *Stage) OneIn(n int) bool {
	s.draw.Lock()
	defer s.draw.Unlock()
	return s.random.IntN(n) == 0
}
