package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Race starts [Nodes] processes with [Callers] callers for each id, and kills the processes at
// random moments. A killed process is started again. Race returns when every caller has a
// final result.
func (s *Stage) Race(ctx context.Context, name string, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r := &race{stage: s, ids: ids, messages: map[string]int{}, begin: make(chan struct{})}
	r.ready.Add(Nodes)
	errs := make([]error, Nodes)
	var nodes sync.WaitGroup
	for i := range Nodes {
		nodes.Go(func() { errs[i] = r.node(ctx, rand.New(rand.NewPCG(s.seed, uint64(i+1)))) })
	}
	r.ready.Wait()
	close(r.begin)
	nodes.Wait()
	fmt.Printf("%s: %d invoices, %d callers each, in %d processes that were killed %d times\n", name, len(ids), Callers, Nodes, r.kills)
	fmt.Printf("      %d actions started, %d of them after a crash; %d callers succeeded, %d were too late; %d calls were refused\n",
		r.messages[acting]+r.messages[resuming]+r.messages[exhausted], r.messages[resuming]+r.messages[exhausted], r.messages[succeeded], r.messages[tooLate], r.messages[refused])
	return errors.Join(errs...)
}

// race is the state of a race in the parent process.
type race struct {
	stage *Stage
	ids   []string
	ready sync.WaitGroup // done when each process was ready once
	begin chan struct{}

	mu       sync.Mutex
	kills    int
	messages map[string]int // counts of messages from all processes
}

// node runs one process, and starts it again after each kill.
func (r *race) node(ctx context.Context, random *rand.Rand) error {
	first := sync.OnceFunc(r.ready.Done)
	defer first()
	for life := range maxKills + 1 {
		killed, err := r.life(ctx, random, life < maxKills, first)
		if !killed {
			return err
		}
	}
	return nil
}

// life runs a process until it exits or is killed. It is killed only if mortal is true.
func (r *race) life(ctx context.Context, random *rand.Rand, mortal bool, ready func()) (killed bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	args := []string{"-node", "-db", r.stage.DB.url, "-dir", r.stage.Dir, "-seed", fmt.Sprint(random.Uint64()), fmt.Sprintf("-v=%t", r.stage.verbose)}
	c := exec.CommandContext(ctx, self, append(args, r.ids...)...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return false, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := c.Start(); err != nil {
		return false, err
	}
	fuse := 1 + random.IntN(len(r.ids)) // the danger point at which it is killed
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch message := lines.Text(); {
		case message == readyMessage:
			ready()
			<-r.begin
			_, _ = io.WriteString(in, "go\n") // fails if the process has exited
		case r.count(message) && mortal && !killed:
			if fuse--; fuse == 0 {
				killed = c.Process.Kill() == nil // SIGKILL: no cleanup
			}
		}
	}
	err = c.Wait()
	if killed {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.kills++
		return true, nil
	}
	if err != nil {
		err = fmt.Errorf("a process failed: %w", err)
	}
	return false, err
}

// count counts a message and reports whether it is a danger point.
func (r *race) count(message string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages[message]++
	return !strings.HasPrefix(message, result) && r.messages[exhausted] == 0
}
