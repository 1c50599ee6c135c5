package store

import (
	"context"
	"errors"
	"hash/fnv"
	"regexp"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Doer runs verbs: an engine, which commits each command by itself, or a transaction. Nothing else implements
// it.
type Doer interface {
	PublicDoer
	Do(context.Context, Command) error
	// Partition returns the partition of the context's workspace. Only a write assigns a partition to a workspace
	// that has none.
	Partition(context.Context, Lane) (Partition, error)
	// Registry returns the reactions of a workspace, cached or, if fresh is set, reloaded.
	Registry(ctx context.Context, at Partition, fresh bool) (*Registry, error)
}

// Tx is one open transaction. It must not be used after the transaction has
// ended, nor by two goroutines at once.
type Tx struct {
	conn      Conn
	directory *Directory
	// fresh holds partitions that this transaction may have assigned itself. They are not shared before it commits.
	fresh map[string]int16
	// read holds registries that this transaction has read itself; it may have changed them.
	read map[Partition]*Registry
}

// NewTx wraps an adapter's transaction.
func NewTx(conn Conn, directory *Directory) *Tx { return &Tx{conn: conn, directory: directory} }

// Registry returns the reactions of a workspace. If it has to read them, it reads through the transaction.
func (t *Tx) Registry(ctx context.Context, at Partition, fresh bool) (*Registry, error) {
	if g := t.read[at]; g != nil && !fresh {
		return g, nil
	}
	if g := t.directory.registries.known(at); g != nil && !fresh {
		return g, nil
	}
	g, err := t.directory.registries.load(ctx, t, at)
	if err != nil {
		return nil, err
	}
	if t.read == nil {
		t.read = make(map[Partition]*Registry)
	}
	t.read[at] = g
	return g, nil
}

// Shared is [Directory.Shared] of the transaction's engine.
func (t *Tx) Shared(key any, make func() any) any { return t.directory.Shared(key, make) }

// Do runs a command inside the transaction.
func (t *Tx) Do(ctx context.Context, c Command) error { return t.conn.Run(ctx, c) }

// Partition returns the partition of the context's workspace. It looks up an unknown workspace through the
// transaction itself: on another connection the lookup would wait for this very transaction.
func (t *Tx) Partition(ctx context.Context, lane Lane) (Partition, error) {
	name := WorkspaceOf(ctx)
	if shard, ok := t.directory.known(name); ok {
		return Partition{shard, name}, nil
	}
	if shard, ok := t.fresh[name]; ok {
		return Partition{shard, name}, nil
	}
	at, stored, err := t.directory.ask(ctx, t, name, lane)
	if err != nil || !stored {
		return at, err
	}
	if t.fresh == nil {
		t.fresh = make(map[string]int16)
	}
	t.fresh[name] = at.Shard
	return at, nil
}

// Directory returns the directory that the transaction shares with its engine.
func (t *Tx) Directory() *Directory { return t.directory }

// DirectoryOf returns the directory of the engine behind a doer, or nil if it has none.
func DirectoryOf(d Doer) *Directory {
	if x, ok := d.(interface{ Directory() *Directory }); ok {
		return x.Directory()
	}
	return nil
}

// Within runs f in the doer's transaction if the doer is one, else in a new transaction.
func Within(ctx context.Context, d Doer, f func(context.Context, *Tx) error) error {
	if tx, ok := d.(*Tx); ok {
		return f(ctx, tx)
	}
	engine, ok := d.(interface {
		Update(context.Context, func(context.Context, *Tx) error) error
	})
	if !ok {
		return fault.New(fault.Internal, "a %T cannot open a transaction", d)
	}
	return engine.Update(ctx, f)
}

// Conn returns the adapter's transaction.
func (t *Tx) Conn() Conn { return Unwrap(t.conn) }

// DefaultWorkspace is the workspace of a context that names none.
const DefaultWorkspace = "default"

type workspaceKey struct{}

// InWorkspace returns a context whose commands run in a workspace.
func InWorkspace(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, workspaceKey{}, name)
}

// WorkspaceOf returns the workspace of a context.
func WorkspaceOf(ctx context.Context) string {
	if name, ok := ctx.Value(workspaceKey{}).(string); ok {
		return name
	}
	return DefaultWorkspace
}

// Directory caches the partitions of workspaces. The database stores them: a workspace keeps the shard it was
// first assigned, even if the number of shards changes. Safe for concurrent use.
type Directory struct {
	shards     int
	registries Registries

	mu    sync.RWMutex
	cache map[string]int16

	sharing sync.Mutex
	common  map[any]any // the values of Shared
}

// Several reports whether more than one workspace is known.
func (p *Directory) Several() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.cache) > 1
}

// NewDirectory returns an empty directory that spreads new workspaces over the given number of shards.
func NewDirectory(shards int) *Directory {
	return &Directory{shards: max(shards, 1), cache: make(map[string]int16)}
}

// Shared returns the value that the parts of an engine and its transactions share under a key. The first call
// makes it.
func (p *Directory) Shared(key any, make func() any) any {
	p.sharing.Lock()
	defer p.sharing.Unlock()
	if v, ok := p.common[key]; ok {
		return v
	}
	if p.common == nil {
		p.common = map[any]any{}
	}
	p.common[key] = make()
	return p.common[key]
}

// Resolve returns the partition of the context's workspace. A write assigns one if there is none.
func (p *Directory) Resolve(ctx context.Context, d Doer, lane Lane) (Partition, error) {
	name := WorkspaceOf(ctx)
	if shard, ok := p.known(name); ok {
		return Partition{shard, name}, nil
	}
	at, stored, err := p.ask(ctx, d, name, lane)
	if err != nil || !stored {
		return at, err
	}
	p.mu.Lock()
	p.cache[name] = at.Shard
	p.mu.Unlock()
	return at, nil
}

// Registry returns the reactions of a workspace.
func (p *Directory) Registry(ctx context.Context, d Doer, at Partition, fresh bool) (*Registry, error) {
	return p.registries.Resolve(ctx, d, at, fresh)
}

// Known returns the partition of a workspace if it is cached. A partition never changes.
func (p *Directory) Known(name string) (Partition, bool) {
	shard, ok := p.known(name)
	return Partition{shard, name}, ok
}

func (p *Directory) known(name string) (int16, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	shard, ok := p.cache[name]
	return shard, ok
}

// ask looks the partition up in the database. For a read of a workspace without a partition it returns the one
// that a write would assign: nothing is stored there or elsewhere.
func (p *Directory) ask(ctx context.Context, d Doer, name string, lane Lane) (at Partition, stored bool, err error) {
	if err := CheckWorkspace(name); err != nil {
		return at, false, err
	}
	at = Partition{p.propose(name), name}
	if lane == Write {
		at.Shard, err = assignShardVerb.DoAt(ctx, d, Partition{Workspace: name}, at.Shard)
		return at, err == nil, noPartition(ctx, err)
	}
	found, err := find.DoAt(ctx, d, Partition{Workspace: name}, struct{}{})
	if err != nil || len(found) == 0 {
		return at, false, err
	}
	return Partition{found[0], name}, true, nil
}

// noPartition returns the error of a write to a workspace whose partition could not be resolved. The assignment
// of the partition may be uncertain, but nothing else was sent.
func noPartition(ctx context.Context, err error) error {
	switch {
	case fault.CodeOf(err) != fault.OutcomeUnknown:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fault.New(fault.Unavailable, "failed to look up the workspace; nothing was written: try again").Wrap(err).AsRetryable()
}

func (p *Directory) propose(name string) int16 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int16(h.Sum32() % uint32(p.shards))
}

// CheckWorkspace refuses an invalid workspace name.
func CheckWorkspace(name string) error {
	if workspaceName.MatchString(name) {
		return nil
	}
	return fault.New(fault.Validation, "a workspace name must have 1 to 63 letters, digits, dots, dashes or underscores and begin with a letter or digit, got %q", name)
}

var workspaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// assignShardVerb assigns a shard to a workspace, or returns the one it has.
var assignShardVerb = NewVerb(Decl{Name: "workspaces.assign_shard", Idempotent: true},
	nil,
	func(shard int16, a *Args) { a.Int("proposed", int64(shard)) },
	ScanValue[int16])

// find returns the shard of a workspace that has one.
var find = VerbOf[struct{}](Decl{Name: "workspaces.find", Lane: Read},
	nil,
	ScanValues[int16])

type inUse struct {
	shard      int16
	workspaces int64
}

// listShardsVerb returns the shards in use.
var listShardsVerb = VerbOf[struct{}](Decl{Name: "workspaces.list_shards", Lane: Read},
	nil,
	Each(func(x *inUse) []any { return []any{&x.shard, &x.workspaces} }))

// Workspace is a tenant.
type Workspace struct {
	Name      string
	CreatedAt time.Time
}

type workspacesArgs struct {
	after string `arg:"after"`
	limit int    `arg:"limit"`
	name  string `arg:"name"`
}

var workspacesVerb = VerbOf[workspacesArgs](Decl{Name: "workspaces.list", Lane: Read}, nil,
	Each(func(w *Workspace) []any { return []any{&w.Name, &w.CreatedAt} }))

// WorkspaceNamed returns the workspace with a name, or nil.
func WorkspaceNamed(ctx context.Context, d Doer, name string) (*Workspace, error) {
	all, err := workspacesVerb.DoAt(ctx, d, Partition{}, workspacesArgs{name: name, limit: 1})
	if err != nil || len(all) == 0 || name == "" {
		return nil, err
	}
	return &all[0], nil
}

// Workspaces returns workspaces sorted by name, beginning after the given name.
func Workspaces(ctx context.Context, d Doer, after string, limit int) ([]Workspace, error) {
	return workspacesVerb.DoAt(ctx, d, Partition{}, workspacesArgs{after: after, limit: limit})
}

// Shards returns the shards that hold workspaces. They are stored, and may differ from those that this node
// would assign.
func Shards(ctx context.Context, d Doer) ([]int16, error) {
	if k, ok := d.(interface {
		Shards(context.Context) ([]int16, error)
	}); ok {
		return k.Shards(ctx)
	}
	shards, _, err := AskShards(ctx, d)
	return shards, err
}

// Partitions returns the partitions that a sweep covers: every shard in use or, in a context of [OnlyWorkspace],
// the context's workspace.
func Partitions(ctx context.Context, d Doer) (all []Partition, err error) {
	if ctx.Value(onlyKey{}) != nil {
		at, err := d.Partition(ctx, Read)
		return []Partition{at}, err
	}
	shards, err := Shards(ctx, d)
	for _, shard := range shards {
		all = append(all, Partition{Shard: shard})
	}
	return all, err
}

// OnlyWorkspace returns a context in which sweeps cover only the context's workspace. It is for tests that step the
// loops by hand.
func OnlyWorkspace(ctx context.Context) context.Context {
	return context.WithValue(ctx, onlyKey{}, true)
}

type onlyKey struct{}

// Sweep calls do for each of the [Partitions] and returns the sum of its results and all errors: a partition that fails
// does not stop the others.
func Sweep(ctx context.Context, d Doer, do func(Partition) (int, error)) (sum int, err error) {
	all, err := Partitions(ctx, d)
	if err != nil {
		return 0, err
	}
	for _, at := range all {
		n, failed := do(at)
		sum, err = sum+n, errors.Join(err, failed)
	}
	return sum, err
}

// Pages returns all results of a paged verb on every shard. next returns the arguments for the page after its
// last element; first and next request limit elements.
func Pages[A, T any](ctx context.Context, d Doer, v *Verb[A, []T], limit int, first A, next func(T) A) (all []T, err error) {
	shards, err := Shards(ctx, d)
	for _, shard := range shards {
		for a := first; ; a = next(all[len(all)-1]) {
			page, err := v.DoAt(ctx, d, Partition{Shard: shard}, a)
			if err != nil {
				return nil, err
			}
			if all = append(all, page...); len(page) < limit {
				break
			}
		}
	}
	return all, err
}

// AskShards reads the shards in use and the number of workspaces from the database.
func AskShards(ctx context.Context, d Doer) (shards []int16, workspaces int64, err error) {
	all, err := listShardsVerb.DoAt(ctx, d, Partition{}, struct{}{})
	for _, x := range all {
		shards = append(shards, x.shard)
		workspaces += x.workspaces
	}
	return shards, workspaces, err
}

// SingleWorkspace reports whether only one workspace is known.
func SingleWorkspace(d Doer) bool {
	k, ok := d.(interface{ SingleWorkspace() bool })
	return ok && k.SingleWorkspace()
}

// ErrTxDone is returned when a transaction is used after its end.
var ErrTxDone = errors.New("the transaction has ended: use it only inside the function that received it")
