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

// Race has [Nodes] processes want the same of each id, [Callers] at once for each,
// and kills them at random moments; a process that was killed is started again. It
// returns when every caller has its answer.
func (s *Stage) Race(ctx context.Context, what string, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r := &race{stage: s, ids: ids, said: map[string]int{}, begin: make(chan struct{})}
	r.ready.Add(Nodes)
	errs := make([]error, Nodes)
	var nodes sync.WaitGroup
	for i := range Nodes {
		nodes.Go(func() { errs[i] = r.node(ctx, rand.New(rand.NewPCG(s.seed, uint64(i+1)))) })
	}
	r.ready.Wait()
	close(r.begin)
	nodes.Wait()
	fmt.Printf("%s: %d invoices, %d callers each, in %d processes that were killed %d times\n", what, len(ids), Callers, Nodes, r.kills)
	fmt.Printf("      %d actions began, %d of them to resume what another left; %d callers were told that they did it, %d that they came too late; %d times another was at it\n",
		r.said[acting]+r.said[resuming]+r.said[weary], r.said[resuming]+r.said[weary], r.said[didIt], r.said[tooLate], r.said[refused])
	return errors.Join(errs...)
}

// race is what the parent knows of its processes.
type race struct {
	stage *Stage
	ids   []string
	ready sync.WaitGroup // until each process is ready for the first time
	begin chan struct{}

	mu    sync.Mutex
	kills int
	said  map[string]int
}

// node is one process, with all of its lives.
func (r *race) node(ctx context.Context, random *rand.Rand) error {
	first := sync.OnceFunc(r.ready.Done)
	defer first()
	for life := range lives + 1 {
		killed, err := r.life(ctx, random, life < lives, first)
		if !killed {
			return err
		}
	}
	return nil
}

// life is a process from its start to its end, by itself or by a kill.
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
	fuse := 1 + random.IntN(len(r.ids)) // how many moments of danger it lives through
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch word := lines.Text(); {
		case word == readyWord:
			ready()
			<-r.begin
			_, _ = io.WriteString(in, "go\n") // one that is gone does not hear it
		case r.hear(word) && mortal && !killed:
			if fuse--; fuse == 0 {
				killed = c.Process.Kill() == nil // SIGKILL: it has no last word
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
		err = fmt.Errorf("a process did not come to its end: %w", err)
	}
	return false, err
}

// hear counts what a process says, and tells whether it is a moment of danger.
func (r *race) hear(word string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said[word]++
	return !strings.HasPrefix(word, answered) && r.said[weary] == 0
}
