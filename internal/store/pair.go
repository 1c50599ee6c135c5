package store

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/holdfast-go/holdfast/fault"
)

// Pair is a command that commits together with a second one: both are applied, or neither. The second is made
// from the result of the first, and from what is then read in the transaction. Pairs of several callers share a
// transaction, as commands share a statement.
//
// An adapter runs a pair in three steps. The probe reserves the row of the second command, without waiting. Then
// the first command runs. If it is applied, the second is made ([Seconds]), runs, and must be applied. A first
// command that is refused writes nothing, and nothing follows it.
//
// A pair runs once. After anything else than these steps, it is rolled back and its caller gets [ErrUnpaired]. That
// includes callers that only shared the transaction: the second command of a pair was made from a result that no
// longer holds, and a repetition may be refused, which must not look like success.
//
// An unknown outcome is resolved through the first command, because both commit together.
//
// Rejected: a further write between the two commands. In a transaction of its own, a caller's locks hide its first
// write from others until it commits; in a shared one, the other callers would see that write.
type Pair struct {
	Command
	// Probe is applied if the second command can be. It writes nothing.
	Probe Command
	then  func(read func(Command) error) (Command, error)

	keys  []Key
	left  bool // taken out of the transaction
	asked bool // then has been called
}

// ErrUnpaired is returned for a pair that was not committed. Nothing was written. The caller can do the same in a
// transaction of its own.
var ErrUnpaired = errors.New("the pair of commands was not committed")

// Keys names every row that the two commands lock.
func (p *Pair) Keys() []Key {
	if p.keys == nil {
		p.keys = slices.Concat(p.Command.Keys(), p.Probe.Keys())
	}
	return p.keys
}

// Leave takes the pair out of its transaction: it has written nothing, and its caller gets [ErrUnpaired].
func (p *Pair) Leave() {
	p.Reset()
	p.left = true
}

// Probes returns the probes of pairs.
func Probes(pairs []Command) []Command {
	all := make([]Command, len(pairs))
	for i, c := range pairs {
		all[i] = c.(*Pair).Probe
	}
	return all
}

// Probed takes the pairs whose probe was not applied out of the transaction, and returns the others.
func Probed(pairs []Command) (rest []Command) {
	for _, c := range pairs {
		p := c.(*Pair)
		if p.left = !p.Probe.Applied(); p.left {
			p.Reset()
		} else {
			rest = append(rest, c)
		}
	}
	return rest
}

// Seconds makes the second commands of the pairs whose first command was applied. For that, it may read in the
// transaction.
func Seconds(pairs []Command, read func(Command) error) (all []Command, err error) {
	for _, c := range pairs {
		p := c.(*Pair)
		if !p.Applied() {
			continue
		}
		if p.asked {
			return nil, ErrUnpaired
		}
		p.asked = true
		second, err := p.then(read)
		if err != nil {
			return nil, err
		}
		all = append(all, second)
	}
	return all, nil
}

// Run runs the steps of one pair in a transaction, which must be rolled back after an error.
func (p *Pair) Run(run func(Command) error) error {
	if p.asked {
		return ErrUnpaired
	}
	self := []Command{p}
	if err := run(p.Probe); err != nil || len(Probed(self)) == 0 {
		return err
	}
	if err := run(p.Command); err != nil {
		return err
	}
	seconds, err := Seconds(self, run)
	for _, c := range seconds {
		if err = run(c); err == nil && !c.Applied() {
			err = ErrUnpaired
		}
	}
	return err
}

// single is the doer of [InPair].
type single struct {
	Doer
	yield func(Command) bool
	err   error // of the command that was yielded
	wrote bool
	// misused is set by a command that a pair cannot contain, even if its error is ignored.
	misused bool
}

func (s *single) doer() Doer { return s }

// Directory returns the directory of the engine.
func (s *single) Directory() *Directory { return DirectoryOf(s.Doer) }

// Provisional reports whether a refusal through the doer is not the last word: after [InPair], its caller does the
// same in a transaction of its own.
func Provisional(d Doer) bool {
	_, pair := d.(*single)
	return pair
}

// Uncommitted reports whether the writes of a doer can still be rolled back after they have returned.
func Uncommitted(d Doer) bool {
	switch d.(type) {
	case *Tx, *single:
		return true
	}
	return false
}

// Do runs a read before the write. It passes the write, and reads after it, to the caller of the coroutine.
func (s *single) Do(ctx context.Context, c Command) error {
	lane := c.Decl().Lane
	switch {
	case lane == Read && !s.wrote:
		return s.Doer.Do(ctx, c)
	case lane == Read, lane == Write && !s.wrote:
		s.err = ErrUnpaired // if the coroutine is stopped
		s.yield(c)
		s.wrote = s.wrote || s.err == nil && c.Applied()
		return s.err
	}
	s.misused = true
	return fault.New(fault.Internal, "%s cannot run in a function whose only write is one command", c.Decl().Name)
}

// InPair runs f and commits its only write together with the command that f returns, which must be in the same
// partition. The doer of f can read, write once, and read again. After its write, f only computes and reads through
// the doer, because the transaction is open and shared with other callers.
//
// f runs as a coroutine: until its write in the goroutine of the caller, and from there in that of the
// transaction. If its write is not applied, f continues in the goroutine of the caller, and InPair returns an error
// even if f returns none. An error other than [fault.OutcomeUnknown] means that nothing was written.
func InPair(ctx context.Context, d Doer, probe func(Partition) Command, f func(context.Context, Doer) (Command, error)) error {
	if Uncommitted(d) {
		return fault.New(fault.Internal, "a pair of commands cannot be part of another transaction")
	}
	s := &single{Doer: d}
	var second Command
	var failed error
	var panicked any
	next, stop := iter.Pull(func(yield func(Command) bool) {
		s.yield = yield
		defer func() {
			if panicked = recover(); panicked != nil { // it continues in the goroutine of the caller
				failed = ErrUnpaired
			}
		}()
		if second, failed = f(ctx, s); failed == nil && s.misused {
			failed = ErrUnpaired
		}
	})
	defer stop()
	then := func(read func(Command) error) (Command, error) {
		s.err = nil
		for {
			c, reading := next()
			if !reading {
				return second, failed
			}
			s.err = read(c)
		}
	}
	var p *Pair
	for p == nil || !p.asked { // until f has returned
		first, writing := next()
		if !writing {
			break
		}
		p = &Pair{Command: first, Probe: probe(first.Partition()), then: then}
		if s.err = d.Do(ctx, p); s.err == nil && p.left {
			s.err = ErrUnpaired
		}
	}
	switch {
	case panicked != nil:
		panic(panicked)
	case p != nil && p.asked && s.err != nil:
		return s.err
	case failed == nil && (p == nil || !p.asked || !p.Applied()):
		return ErrUnpaired
	}
	return failed
}
