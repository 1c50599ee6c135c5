package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// kinds are the faults. A kind that is listed twice is twice as likely.
var kinds = []string{"server killed", "worker killed", "worker stopped", "answers lost", "requests cut", "worker killed", "worker stopped", "answers lost", "server stopped"}

// faults injects faults on a schedule derived from the seed, until ctx ends and all processes run
// again. A process has one fault at a time. It returns the number of faults of each kind.
func (r *rig) faults(ctx context.Context, seed uint64) map[string]int {
	random := rand.New(rand.NewPCG(seed, 1<<32))
	count := make(map[string]int)
	var under sync.WaitGroup
	for i := 0; i < len(kinds) || ctx.Err() == nil; i++ {
		pause(ctx, time.Duration(100+random.IntN(400))*time.Millisecond)
		kind := kinds[i%len(kinds)]
		if i >= len(kinds) {
			kind = kinds[random.IntN(len(kinds))]
		}
		server, worker, proxy := r.servers[random.IntN(len(r.servers))], r.workers[random.IntN(len(r.workers))], r.proxies[random.IntN(len(r.proxies))]
		n, down := 1+random.Int64N(6), time.Duration(random.IntN(800))*time.Millisecond
		one, fault := worker, func() {}
		switch kind {
		case "server killed":
			one, fault = server, func() { r.killed(server, down) }
		case "worker killed":
			fault = func() { r.killed(worker, down) }
		case "server stopped":
			one, fault = server, func() { stopped(server, lease+down) }
		case "worker stopped":
			fault = func() { stopped(worker, 3*lease+down) }
		case "answers lost":
			fault = func() { proxy.answers.Add(n) }
		case "requests cut":
			fault = func() { proxy.requests.Add(n) }
		}
		seldom := i >= len(kinds) && one == server && random.IntN(3) >= len(r.servers) // a single server must not be down most of the time
		if seldom || !one.under.CompareAndSwap(false, true) {
			continue
		}
		count[kind]++
		under.Go(func() {
			fault()
			one.under.Store(false)
		})
	}
	under.Wait()
	for _, p := range r.proxies {
		p.answers.Store(0)
		p.requests.Store(0)
	}
	return count
}

// killed kills a process and starts it again after a while.
func (r *rig) killed(p *process, down time.Duration) {
	p.kill()
	pause(context.Background(), down)
	if err := p.start(); err != nil {
		r.t.Errorf("%s: %v", p.name, err)
	}
}

// stopped stops a process for a while.
func stopped(p *process, d time.Duration) {
	p.signal(syscall.SIGSTOP)
	pause(context.Background(), d)
	p.signal(syscall.SIGCONT)
}
