package crash

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// Point is a place where the engine met the database, or a body met the world outside.
type Point struct {
	Name  string // "do events.append", "run scopes.inc", "commit", "call charge"
	Key   string // of a call, which may differ from one run to the next
	Fault Fault  // fault that struck there
}

// IsCall reports whether the point is a call to the world outside.
func (p Point) IsCall() bool { return strings.HasPrefix(p.Name, callPrefix) }

const callPrefix = "call "

// Plan says where to strike. The zero value strikes nowhere and counts nothing until it is armed. It is safe
// for concurrent use, but only a single goroutine meets the points in a predictable order.
type Plan struct {
	mu     sync.Mutex
	armed  bool
	rest   []Strike // strikes to come
	at     int      // points since the last strike
	points []Point  // points since it was armed

	lasting Fault // permanent fault, or None
	struck  int   // how often the permanent fault has struck

	dead   bool               // the engine opened last has crashed
	last   *crashing          // the engine opened last
	cancel context.CancelFunc // ends the request in flight
}

// Arm begins a case: points are numbered from 1 again.
func (p *Plan) Arm(strikes ...Strike) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.rest, p.at, p.points = true, strikes, 0, nil
	p.lasting, p.struck = None, 0
}

// Disarm ends the case. It returns the points met, and how many strikes were never reached.
func (p *Plan) Disarm() (met []Point, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	return p.points, len(p.rest)
}

// Dead reports whether the engine opened last has crashed.
func (p *Plan) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Request returns the context of a client's request, which ends when the engine crashes, or with a permanent [Cancel].
func (p *Plan) Request(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, planKey{}, p))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = cancel
	return ctx, cancel
}

type planKey struct{}

// reopened records a new engine: the faults of the previous one are over.
func (p *Plan) reopened(s *crashing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.dead, p.lasting, p.struck = s, false, None, 0
}

// died records the crash of an engine, which ends the bodies that it runs.
func (p *Plan) died(s *crashing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.dead.Store(true); p.last != s {
		return
	}
	if p.dead = true; p.cancel != nil {
		p.cancel()
	}
}

// Call makes a call of a body to the world outside, in the context of a [Plan.Request]: a point with a name, under a
// key. do records that the call arrived. A crashed engine calls nothing.
func Call(ctx context.Context, name, key string, do func()) error {
	p, ok := ctx.Value(planKey{}).(*Plan)
	if err := context.Cause(ctx); err != nil || !ok {
		if err == nil {
			do()
		}
		return err
	}
	f := p.meet(callPrefix+name, key)
	switch {
	case f == Before:
		return p.last.kill()
	case f == Lost:
		return errNoResponse
	case f == Cancel || ctx.Err() != nil:
		return context.Canceled
	}
	do()
	switch f {
	case After:
		return p.last.kill()
	case Error:
		return errNoResponse
	}
	return nil
}

var errNoResponse = errors.New("injected fault: no response")

// meet numbers a point and returns the fault that strikes there.
func (p *Plan) meet(name, key string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed {
		return None
	}
	p.at++
	s := p.strike()
	p.points = append(p.points, Point{name, key, s.Fault})
	if s.ForGood && s.Fault == Cancel && p.cancel != nil {
		p.cancel() // the call itself may be detached from the request
		return None
	}
	return s.Fault
}

// strike returns the strike at the current point. REQUIRES: mu
func (p *Plan) strike() (s Strike) {
	if p.lasting != None {
		p.at = 0
		if p.struck++; p.struck > Patience {
			return Strike{Fault: Before}
		}
		return Strike{Fault: p.lasting}
	}
	if len(p.rest) == 0 || p.rest[0].At != p.at {
		return s
	}
	s = p.rest[0]
	p.rest, p.at = p.rest[1:], 0
	if s.ForGood && (s.Fault == Error || s.Fault == Lost) {
		p.lasting, p.struck = s.Fault, 1
	}
	return s
}
