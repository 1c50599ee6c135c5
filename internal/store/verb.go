package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/fault"
)

// ID is the key of a command and of the event it writes. It is time-ordered, so that its index grows at
// one end.
type ID = uuid.UUID

// NewID returns a new time-ordered id.
func NewID() ID { return uuid.Must(uuid.NewV7()) }

// FirstID returns the least id that can be made at a moment.
func FirstID(at time.Time) (id ID) {
	ms := uint64(at.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}

// Lane selects the connections that serve a verb.
type Lane uint8

const (
	// Write is the lane of commands that change something.
	Write Lane = iota
	// Read is the lane of commands that change nothing. They return any number of rows.
	Read
	// Vital is the lane of commands that must not queue behind others: lease renewals and the health check of the
	// database. PostgreSQL serves them from a small pool of their own.
	Vital
	// Work is the lane of the other commands that write, and return any number of rows: claims, and the nodes' own
	// records and cleanup. They carry no id: a claim whose response is lost expires, and the others may be repeated.
	Work
)

// Decl is the declaration of a verb that adapters and tests see.
type Decl struct {
	// Name is the name of the SQL, "events.append".
	Name string
	// NoWait names another verb whose SQL this verb uses, without waiting for rows locked by other transactions.
	NoWait string
	Lane   Lane
	// Group allows commands of several callers to share a statement.
	Group bool
	// Commutative allows members of a group to share a row.
	Commutative bool
	// Serial makes the commands on one row run one after the other, each in a statement of its own: they wait in the
	// process instead of waiting for each other's locks in the database.
	Serial bool
	// Events is the table of the event that an applied command writes under its id. An unknown outcome is resolved
	// through it.
	Events EventTable
	// Idempotent allows the verb to be retried when its outcome is unknown.
	Idempotent bool
	// Aside marks a command that the engine runs in the background and that nothing depends on. Crash tests do not
	// count it, because the moment at which it runs is not determined.
	Aside bool
	// Slow marks a read that may scan much of the database. It gets [SlowLimit] instead of the time limit of a
	// call.
	Slow bool
}

// SlowLimit is the time limit of a slow read.
const SlowLimit = 5 * time.Minute

// EventTable names a table of events.
type EventTable string

// The event tables.
const (
	NoEvents      EventTable = ""
	StreamEvents  EventTable = "event"
	HistoryEvents EventTable = "history"
)

// Key names one row that a command locks, with the shard and workspace of the command.
type Key struct {
	Shard     int16
	Workspace string
	Row       string
}

// Partition is the shard and name of a workspace.
type Partition struct {
	Shard     int16
	Workspace string
}

// Row is one row of a result.
type Row interface {
	// Applied reports whether the command was applied. The row of a refused command contains what was found
	// instead.
	Applied() bool
	// Scan copies the columns, as database/sql does.
	Scan(dest ...any) error
}

// Command is one call of a verb: a value that an adapter can run by itself or in a transaction. It is used by
// one goroutine at a time.
type Command interface {
	Decl() Decl
	// ID is the id of this command, the same for every attempt until Renew changes it.
	ID() ID
	// Partition is the shard and workspace that the command touches.
	Partition() Partition
	// Keys names every row that the command locks.
	Keys() []Key
	// Bind adds the command's arguments as one more member.
	Bind(*Args)
	// Reset clears the result of an earlier attempt.
	Reset()
	// Scan scans one row of the result. It returns [ErrEnough] if no further row is wanted.
	Scan(Row) error
	// Applied reports whether the command was applied.
	Applied() bool
	// Renew gives the command a new id, after the old one is known never to be applied.
	Renew()
	// Wakes returns the topics to wake once the command is committed.
	Wakes() []string
	// Recover rebuilds the result from the event that the command wrote, after the database's response was lost.
	Recover(CommitProof)
	// Known returns the registry revision that the command is based on and the reactions to notify as a JSON list,
	// "" for none; ok is false for a verb that writes no events.
	Known() (revision int64, marks string, ok bool)
	// Refuse records that the registry has another revision and nothing was written.
	Refuse()
	sealed()
}

// Verb is the declaration of one database operation. It is created once, as a package variable, and is safe for
// concurrent use.
type Verb[A, R any] struct{ verb }

// verb is a [Verb] without its types: its functions get pointers to the arguments and to the result. There are
// hundreds of pairs of types, and the compiler writes the methods of a generic type for each of them: five megabytes of
// program. So only what needs the types is generic, and the rest is here and in [command].
type verb struct {
	decl    Decl
	keys    func(args any) []string
	bind    func(args any, to *Args)
	scan    func(out any, r Row) error
	recover func(args, out any, m CommitProof)
	wake    func(args any) []string
	emit    func(args any) Emission
	rule    func(args any) Move
	cols    *Columns
}

// NewVerb declares a verb and registers it, so that [Decls] lists it for every adapter. It panics if the name
// is taken. keys may be nil for a verb that locks nothing. The binder runs once for a zero A, to record the
// names and types of the columns.
func NewVerb[A, R any](d Decl, keys func(A) []string, bind func(A, *Args), scan func(*R, Row) error) *Verb[A, R] {
	return newVerb(d, keys, func(a any, to *Args) { bind(*a.(*A), to) }, scan)
}

func newVerb[A, R any](d Decl, keys func(A) []string, bind func(args any, to *Args), scan func(*R, Row) error) *Verb[A, R] {
	v := &Verb[A, R]{verb{decl: d, bind: bind, scan: func(out any, r Row) error { return scan(out.(*R), r) }}}
	if keys != nil {
		v.keys = func(a any) []string { return keys(*a.(*A)) }
	}
	v.declare(new(A))
	return v
}

// declare registers the verb with the columns that it binds for zero arguments.
func (v *verb) declare(zero any) {
	v.cols = new(Columns)
	probe := &Args{probing: true}
	(&command{verb: v, args: zero}).bind(probe)
	v.cols.Members = probe.columns
	if probe.children != nil {
		v.cols.Children = probe.children.columns
	}
	register(v.decl, v.cols)
}

// RecoverWith sets the function that rebuilds a result from the event of an applied command, and returns the
// verb.
func (v *Verb[A, R]) RecoverWith(f func(A, CommitProof) R) *Verb[A, R] {
	v.recover = func(a, out any, m CommitProof) { *out.(*R) = f(*a.(*A), m) }
	return v
}

// Wakes sets the topics that an applied command wakes, and returns the verb. A wake-up is only a hint that
// saves a wait; the tables are authoritative.
func (v *Verb[A, R]) Wakes(f func(A) []string) *Verb[A, R] {
	v.wake = func(a any) []string { return f(*a.(*A)) }
	return v
}

// Emits sets the events that a command writes, and returns the verb.
func (v *Verb[A, R]) Emits(f func(A) Emission) *Verb[A, R] {
	v.emit, v.cols.Emits = func(a any) Emission { return f(*a.(*A)) }, true
	v.cols.Members = append(v.cols.Members, Column{"revision", IntKind}, Column{"marks", TextKind})
	return v
}

// GuardStatus sets how a command moves an entity, and returns the verb. The command is refused if the lifecycle
// lacks a status of the move, if it would leave the entity in a claim status, or if [Move.Stray] is no longer one.
func (v *Verb[A, R]) GuardStatus(f func(A) Move) *Verb[A, R] {
	v.rule = func(a any) Move { return f(*a.(*A)) }
	return v
}

// Do runs the verb in the workspace of the context and returns its result.
func (v *Verb[A, R]) Do(ctx context.Context, d Doer, a A) (R, error) {
	at, err := d.Partition(ctx, v.decl.Lane)
	if err != nil {
		var none R
		return none, err
	}
	return v.DoAt(ctx, d, at, a)
}

// Command returns a call of the verb that has not run, for [InPair].
func (v *Verb[A, R]) Command(at Partition, a A) Command {
	c := &v.call(at, a).command
	c.id = NewID()
	return c
}

// DoAt runs the verb at the given partition.
func (v *Verb[A, R]) DoAt(ctx context.Context, d Doer, at Partition, a A) (R, error) {
	c := v.call(at, a)
	if err := c.command.run(ctx, d); err != nil {
		var none R
		return none, err
	}
	return c.result, nil
}

// invocation is a [command] with what it points to, in one allocation.
type invocation[A, R any] struct {
	command command
	input   A
	result  R
}

func (v *Verb[A, R]) call(at Partition, a A) *invocation[A, R] {
	c := &invocation[A, R]{input: a}
	c.command = command{verb: &v.verb, at: at, args: &c.input, out: &c.result}
	return c
}

// run runs the command, again if the registry has changed meanwhile.
func (c *command) run(ctx context.Context, d Doer) error {
	c.meter = meterOf(ctx, c.verb.decl.Lane)
	if c.verb.decl.Lane == Write {
		c.id = NewID()
	}
	for attempt := 0; ; attempt++ {
		if err := c.loadRegistry(ctx, d, attempt > 0); err != nil {
			return err
		}
		if err := c.do(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", c.verb.decl.Name, err)
		}
		if !c.stale {
			if c.meter != nil {
				c.meter.charge()
			}
			return nil
		}
		if attempt == maxReloads {
			return fault.New(fault.Unavailable, "%s: reactions were registered during every attempt: try again", c.verb.decl.Name).AsRetryable()
		}
	}
}

// do runs the command, through the gate of its context if there is one.
func (c *command) do(ctx context.Context, d Doer) error {
	if c.meter == nil || c.meter.gate == nil {
		return d.Do(ctx, c)
	}
	return c.meter.gate.Pass(ctx, func() (int, error) {
		err := d.Do(ctx, c)
		return c.meter.bytes, err
	}, c.Reset)
}

// maxReloads limits how often a command reloads a stale registry.
const maxReloads = 20

// loadRegistry loads the registry and finds the reactions that want the command's events.
func (c *command) loadRegistry(ctx context.Context, d Doer, fresh bool) error {
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
			// The cached registry may be stale, and the statement that would detect that is not sent.
			return c.loadRegistry(ctx, d, true)
		} else if err != nil {
			return err
		}
	}
	if len(g.Reactions) > 0 {
		c.due = g.match(c.verb.decl.Events, c.verb.emit(c.args))
	}
	return nil
}

// command is a verb with pointers to its arguments and to where its result goes.
type command struct {
	verb *verb
	at   Partition
	id   ID
	args any
	out  any
	keys []Key // computed on first use

	meter *meter // nil without a budget or gate

	applied  bool
	stale    bool // refused because the registry has another revision
	revision int64
	due      []string // the reactions that want its events
}

func (c *command) Decl() Decl           { return c.verb.decl }
func (c *command) ID() ID               { return c.id }
func (c *command) Partition() Partition { return c.at }
func (c *command) sealed()              {}

func (c *command) Keys() []Key {
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

// Bind binds shard and workspace first, then, for a write, the command id, so that no binder can forget them. A
// verb that writes events ends with two more: the registry's revision and the due notices.
func (c *command) Bind(a *Args) {
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

func (c *command) bind(a *Args) {
	a.begin()
	a.put("shard", ShardKind, int64(c.at.Shard))
	a.Text("workspace", c.at.Workspace)
	if c.verb.decl.Lane == Write {
		a.put("command", IDKind, c.id)
	}
	c.verb.bind(c.args, a)
}

func (c *command) Known() (revision int64, marks string, ok bool) {
	if len(c.due) > 0 {
		list, _ := json.Marshal(c.due) // a list of strings always marshals
		marks = string(list)
	}
	return c.revision, marks, c.verb.emit != nil
}

func (c *command) Refuse() { c.stale = true }

func (c *command) Reset() {
	reflect.ValueOf(c.out).Elem().SetZero()
	c.applied, c.stale = false, false
	if c.meter != nil {
		c.meter.reset()
	}
}

func (c *command) Scan(r Row) error {
	c.applied = r.Applied()
	if c.meter != nil {
		return c.meter.scan(r, func(r Row) error { return c.verb.scan(c.out, r) })
	}
	return c.verb.scan(c.out, r)
}

func (c *command) Applied() bool { return c.applied }
func (c *command) Renew()        { c.id = NewID() }

func (c *command) Wakes() []string {
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

func (c *command) Recover(m CommitProof) {
	c.applied = true
	if c.verb.recover != nil {
		c.verb.recover(c.args, c.out, m)
	}
}

// verbs are all verbs of this program.
var verbs struct {
	mu    sync.Mutex
	decls map[string]Decl
	cols  map[string]*Columns
}

func register(d Decl, cols *Columns) {
	verbs.mu.Lock()
	defer verbs.mu.Unlock()
	if verbs.decls == nil {
		verbs.decls, verbs.cols = make(map[string]Decl), make(map[string]*Columns)
	}
	if _, taken := verbs.decls[d.Name]; taken || d.Name == "" {
		panic(fmt.Sprintf("store: the verb %q is declared twice or has no name", d.Name))
	}
	if name, invalid := cols.invalidName(); invalid {
		panic(fmt.Sprintf("store: verb %q: the column name %q is reserved, duplicate or malformed", d.Name, name))
	}
	verbs.decls[d.Name], verbs.cols[d.Name] = d, cols
}

// ColumnsOf returns the arguments of a verb.
func ColumnsOf(verb string) Columns {
	verbs.mu.Lock()
	defer verbs.mu.Unlock()
	if cols := verbs.cols[verb]; cols != nil {
		return *cols
	}
	return Columns{}
}

// Decls returns every verb that this program declares, sorted by name.
func Decls() []Decl {
	verbs.mu.Lock()
	defer verbs.mu.Unlock()
	decls := make([]Decl, 0, len(verbs.decls))
	for _, d := range verbs.decls {
		decls = append(decls, d)
	}
	slices.SortFunc(decls, func(a, b Decl) int { return cmp.Compare(a.Name, b.Name) })
	return decls
}
