package crash

import (
	"context"
	"sync"
)

// Point is a place where the engine met the database.
type Point struct {
	Name  string // "do events.append", "run scopes.inc", "commit"
	Fault Fault  // fault that struck there
}

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

// Request returns the context of a client's request, which a permanent [Cancel] can end.
func (p *Plan) Request(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = cancel
	return ctx, cancel
}

// reopened records a new engine: the faults of the previous one are over.
func (p *Plan) reopened() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead, p.lasting, p.struck = false, None, 0
}

func (p *Plan) died() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// meet numbers a point and returns the fault that strikes there.
func (p *Plan) meet(name string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed {
		return None
	}
	p.at++
	s := p.strike()
	p.points = append(p.points, Point{name, s.Fault})
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
