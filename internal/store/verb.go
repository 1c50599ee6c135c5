package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/fault"
)

// ID is the key of a command and of the history event that it writes. It is
// time-ordered, so that the index on it grows at one end.
type ID = uuid.UUID

// NewID returns a fresh, time-ordered id.
func NewID() ID { return uuid.Must(uuid.NewV7()) }

// Lane says which connections serve a verb.
type Lane uint8

const (
	// Write is the lane of commands that change something.
	Write Lane = iota
	// Read is the lane of commands that change nothing. They answer any
	// number of rows.
	Read
	// Vital is the lane of commands that must not queue behind the others:
	// renewals of holds and the question whether the database lives.
	// PostgreSQL serves them from a small pool of their own.
	Vital
	// Work is the lane of takes: commands that write and answer any number
	// of rows. They carry no id, because a take whose answer is lost runs
	// out by itself.
	Work
)

// Decl is what an adapter and a test know of a verb.
type Decl struct {
	// Name is the name of the SQL, "events.append".
	Name string
	// NoWait names another verb: this one has its SQL, and waits for no
	// row that somebody else has locked.
	NoWait string
	Lane   Lane
	// Group says that commands of several callers may share a statement.
	Group bool
	// Commutative says that the verb adds up: members of a group may share a row.
	Commutative bool
	// EventTable is the table that holds the event which an applied command of
	// this verb writes under its id: that is how an unknown outcome is
	// resolved.
	Events EventTable
	// Idempotent says that the verb may be repeated without harm, where its
	// outcome is unknown.
	Idempotent bool
	// Slow says of a read that it may look at much of the database: it has
	// [SlowLimit] instead of the limit of a call.
	Slow bool
}

// SlowLimit is how long a slow read may take.
const SlowLimit = 5 * time.Minute

// EventTable names a table of events.
type EventTable string

// The two tables of events.
const (
	NoEvents      EventTable = ""
	StreamEvents  EventTable = "event"
	HistoryEvents EventTable = "history"
)

// Key names one row that a command locks. A key's shard and workspace are
// those of the command.
type Key struct {
	Shard     int16
	Workspace string
	Row       string
}

// Partition is where a workspace lives.
type Partition struct {
	Shard     int16
	Workspace string
}

// Row is one row of an answer.
type Row interface {
	// Applied says whether the command did what it was asked to; a row of a
	// refused command tells what was found instead.
	Applied() bool
	// Scan copies the columns, as database/sql does.
	Scan(dest ...any) error
}

// Command is one call of a verb: a value that an adapter can run alone or in a
// transaction. It is used by one goroutine at a time.
type Command interface {
	Decl() Decl
	// ID is the caller's own id of this command, the same for every try.
	ID() ID
	// Partition is the shard and workspace that the command touches.
	Partition() Partition
	// Keys names every row that it locks.
	Keys() []Key
	// Bind adds the command's arguments as one more member.
	Bind(*Args)
	// Reset forgets the answer of an earlier try.
	Reset()
	// Scan takes one row of the answer. [ErrEnough] says that it is the last that is wanted.
	Scan(Row) error
	// Applied says whether the answer was that it was applied.
	Applied() bool
	// Renew gives the command a new id, when the old one is known never to
	// be applied.
	Renew()
	// Wakes names those who have something to do once it is committed.
	Wakes() []string
	// Recover makes the answer from the event that the command wrote, where
	// the database's own answer was lost.
	Recover(CommitProof)
	// Known returns the revision of the registry that the command goes by,
	// and the reactions to mark as a JSON list, "" for none; ok is false for
	// a verb that writes no events.
	Known() (revision int64, marks string, ok bool)
	// Refuse says that the revision is another by now: nothing was written.
	Refuse()
	sealed()
}

// Verb is the declaration of one thing that a database does. It is made once,
// as a package variable, and is safe for concurrent use.
type Verb[A, R any] struct {
	decl    Decl
	keys    func(A) []string
	bind    func(*A, *Args)
	scan    func(*R, Row) error
	recover func(A, CommitProof) R
	wake    func(A) []string
	emit    func(A) Emission
	rule    func(A) Move
	cols    *Columns
}

// NewVerb declares a verb and registers it, so that [Decls] and with it every
// adapter know of it. It panics if the name is taken: that is a mistake in
// wiring. keys may be nil for a verb that locks nothing. The binder runs once for
// a zero A, to know the names and types of the columns.
func NewVerb[A, R any](d Decl, keys func(A) []string, bind func(A, *Args), scan func(*R, Row) error) *Verb[A, R] {
	return newVerb(d, keys, func(a *A, args *Args) { bind(*a, args) }, scan)
}

func newVerb[A, R any](d Decl, keys func(A) []string, bind func(*A, *Args), scan func(*R, Row) error) *Verb[A, R] {
	v := &Verb[A, R]{decl: d, keys: keys, bind: bind, scan: scan, cols: new(Columns)}
	probe := &Args{probing: true}
	(&command[A, R]{verb: v}).bind(probe)
	v.cols.Members = probe.columns
	if probe.children != nil {
		v.cols.Children = probe.children.columns
	}
	register(d, v.cols)
	return v
}

// RecoverWith sets how an answer is made from the event that an applied command wrote,
// and returns the verb.
func (v *Verb[A, R]) RecoverWith(f func(A, CommitProof) R) *Verb[A, R] {
	v.recover = f
	return v
}

// Wakes sets whom an applied command wakes, and returns the verb. A wake-up is
// a hint that saves somebody a wait: the truth is in the tables.
func (v *Verb[A, R]) Wakes(f func(A) []string) *Verb[A, R] {
	v.wake = f
	return v
}

// Emits sets what events a command writes, and returns the verb.
func (v *Verb[A, R]) Emits(f func(A) Emission) *Verb[A, R] {
	v.emit, v.cols.Emits = f, true
	v.cols.Members = append(v.cols.Members, Column{"revision", IntKind}, Column{"marks", TextKind})
	return v
}

// GuardStatus sets how a command moves an entity, and returns the verb: a status that the
// lifecycle does not have is refused, and so is a claim status that is not claimed.
func (v *Verb[A, R]) GuardStatus(f func(A) Move) *Verb[A, R] {
	v.rule = f
	return v
}

// Do runs the verb in the workspace of the context and returns its answer.
func (v *Verb[A, R]) Do(ctx context.Context, d Doer, a A) (R, error) {
	at, err := d.Partition(ctx, v.decl.Lane)
	if err != nil {
		var none R
		return none, err
	}
	return v.DoAt(ctx, d, at, a)
}

// DoAt runs the verb at a place that the caller names.
func (v *Verb[A, R]) DoAt(ctx context.Context, d Doer, at Partition, a A) (R, error) {
	c := &command[A, R]{verb: v, at: at, args: a, meter: meterOf(ctx, v.decl.Lane)}
	if v.decl.Lane == Write {
		c.id = NewID()
	}
	for try := 0; ; try++ {
		if err := c.know(ctx, d, try > 0); err != nil {
			var none R
			return none, err
		}
		if err := c.do(ctx, d); err != nil {
			var none R
			return none, fmt.Errorf("%s: %w", v.decl.Name, err)
		}
		if !c.stale {
			if c.meter != nil {
				c.meter.charge()
			}
			return c.out, nil
		}
		if try == mostReloads {
			var none R
			return none, fault.New(fault.Unavailable, "%s: reactions were registered each time it was tried", v.decl.Name).Repeatable()
		}
	}
}

// do runs the command, through the gate of its context if there is one.
func (c *command[A, R]) do(ctx context.Context, d Doer) error {
	if c.meter == nil || c.meter.gate == nil {
		return d.Do(ctx, c)
	}
	return c.meter.gate.Pass(ctx, func() (int, error) {
		err := d.Do(ctx, c)
		return c.meter.bytes, err
	}, c.Reset)
}

// mostReloads is how often a command is tried whose node's registry is stale
// each time.
const mostReloads = 20

// know tells the command which reactions want what it writes.
func (c *command[A, R]) know(ctx context.Context, d Doer, fresh bool) error {
	if c.verb.emit == nil {
		return nil
	}
	g, err := d.Registry(ctx, c.at, fresh)
	if err != nil {
		return err
	}
	c.revision, c.due, c.stale = g.Revision, nil, false
	if len(g.Statuses) > 0 && c.verb.rule != nil {
		if err := g.allows(c.verb.rule(c.args)); err != nil && !fresh {
			return c.know(ctx, d, true) // what is remembered may be of yesterday, and nothing else would tell
		} else if err != nil {
			return err
		}
	}
	if len(g.Reactions) > 0 {
		c.due = g.match(c.verb.decl.Events, c.verb.emit(c.args))
	}
	return nil
}

// command is a [Verb] with its arguments and, once run, its answer.
type command[A, R any] struct {
	verb *Verb[A, R]
	at   Partition
	id   ID
	args A
	out  R
	keys []Key // once asked for

	meter *meter // nil where no budget bounds it

	applied  bool
	stale    bool // refused, because the registry has another revision
	revision int64
	due      []string
}

func (c *command[A, R]) Decl() Decl           { return c.verb.decl }
func (c *command[A, R]) ID() ID               { return c.id }
func (c *command[A, R]) Partition() Partition { return c.at }
func (c *command[A, R]) sealed()              {}

func (c *command[A, R]) Keys() []Key {
	if c.verb.keys == nil || c.keys != nil {
		return c.keys
	}
	rows := c.verb.keys(c.args)
	c.keys = make([]Key, len(rows))
	for i, row := range rows {
		c.keys[i] = Key{Shard: c.at.Shard, Workspace: c.at.Workspace, Row: row}
	}
	return c.keys
}

// Bind puts shard and workspace first, then, for a writer, its id: the same
// three for every verb, so that no binder can forget them. A verb that writes
// events has two more behind its own, the registry's revision and the marks.
func (c *command[A, R]) Bind(a *Args) {
	if a.cols == nil {
		a.cols, a.columns = c.verb.cols, c.verb.cols.Members
	}
	c.bind(a)
	if revision, marks, ok := c.Known(); ok {
		a.Int("revision", revision)
		a.MaybeText("marks", marks)
	}
	a.end()
}

func (c *command[A, R]) bind(a *Args) {
	a.begin()
	a.put("shard", ShardKind, int64(c.at.Shard))
	a.Text("workspace", c.at.Workspace)
	if c.verb.decl.Lane == Write {
		a.put("command", IDKind, c.id)
	}
	c.verb.bind(&c.args, a)
}

func (c *command[A, R]) Known() (revision int64, marks string, ok bool) {
	if len(c.due) > 0 {
		list, _ := json.Marshal(c.due) // of strings, it does not fail
		marks = string(list)
	}
	return c.revision, marks, c.verb.emit != nil
}

func (c *command[A, R]) Refuse() { c.stale = true }

func (c *command[A, R]) Reset() {
	var none R
	c.out, c.applied, c.stale = none, false, false
	if c.meter != nil {
		c.meter.reset()
	}
}

func (c *command[A, R]) Scan(r Row) error {
	c.applied = r.Applied()
	if c.meter != nil {
		return c.meter.scan(r, func(r Row) error { return c.verb.scan(&c.out, r) })
	}
	return c.verb.scan(&c.out, r)
}

func (c *command[A, R]) Applied() bool { return c.applied }
func (c *command[A, R]) Renew()        { c.id = NewID() }

func (c *command[A, R]) Wakes() []string {
	if !c.applied {
		return nil
	}
	var topics []string
	if c.verb.wake != nil {
		topics = c.verb.wake(c.args)
	}
	for _, name := range c.due {
		topics = append(topics, DueTopic(name))
	}
	return topics
}

func (c *command[A, R]) Recover(m CommitProof) {
	c.applied = true
	if c.verb.recover != nil {
		c.out = c.verb.recover(c.args, m)
	}
}

var registry struct {
	mu    sync.Mutex
	decls map[string]Decl
	cols  map[string]*Columns
}

func register(d Decl, cols *Columns) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if registry.decls == nil {
		registry.decls, registry.cols = make(map[string]Decl), make(map[string]*Columns)
	}
	if _, taken := registry.decls[d.Name]; taken || d.Name == "" {
		panic(fmt.Sprintf("store: the verb %q is declared twice or has no name", d.Name))
	}
	if name, wrong := cols.wrong(); wrong {
		panic(fmt.Sprintf("store: the verb %q binds no column, or two, by the name %q", d.Name, name))
	}
	registry.decls[d.Name], registry.cols[d.Name] = d, cols
}

// ColumnsOf returns the arguments of a verb.
func ColumnsOf(verb string) Columns {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if cols := registry.cols[verb]; cols != nil {
		return *cols
	}
	return Columns{}
}

// Decls returns every verb that this program declares, by name.
func Decls() []Decl {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	decls := make([]Decl, 0, len(registry.decls))
	for _, d := range registry.decls {
		decls = append(decls, d)
	}
	slices.SortFunc(decls, func(a, b Decl) int { return cmp.Compare(a.Name, b.Name) })
	return decls
}
