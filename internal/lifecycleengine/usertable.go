package lifecycleengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/store"
)

func (s *bound) newStore(ctx context.Context) (entityStore, error) {
	if s.config.Table == nil {
		return &builtinTable{bound: s}, nil
	}
	return newUserTable(ctx, s, EntityTable{Table: *s.config.Table})
}

// userTable is a table of the user's. Its row has the status and the version, which the user may
// write at any time. The lease and the history are on a companion row in Holdfast's own table.
//
// Each write locks the companion row first and then the user's row, by a compare-and-swap of its
// status. Both rows therefore change together or not at all, and always in the same order. The
// status on the companion row is the one that was last seen; it is synchronized before use.
type userTable struct {
	bound *bound
	table store.UserTable
	space string // the workspace of the whole table, or "" if rows have their own
	// only is the workspace of a lifecycle that was published through the API: rows of other workspaces are not
	// its entities. It is "" for a lifecycle of a program.
	only  string
	write []string // the columns that handlers may set through the API
}

// EntityTable is a user table, with the columns that remote handlers may set.
type EntityTable struct {
	lifecycleconfig.Table
	Write []string
}

// open opens the table.
func (t EntityTable) open(ctx context.Context, e *engine.Engine) (store.UserTable, error) {
	tables, ok := e.Runner().Base().(store.UserTables)
	if !ok {
		return nil, fault.New(fault.Validation, "this database does not support user tables: remove entity_table from the config")
	}
	return tables.OpenTable(ctx, store.Table{Name: t.Name, ID: cmp.Or(t.ID, "id"), Status: cmp.Or(t.Status, "status"),
		Version: cmp.Or(t.Version, "version"), Workspace: t.Workspace, Write: t.Write})
}

// workspace returns the workspace of the whole table, or "" if rows have their own.
func (t EntityTable) workspace() string {
	if t.Workspace != "" {
		return ""
	}
	return cmp.Or(t.InWorkspace, store.DefaultWorkspace)
}

func newUserTable(ctx context.Context, s *bound, t EntityTable) (o *userTable, err error) {
	o = &userTable{bound: s, space: t.workspace(), write: t.Write}
	if s.bound != nil {
		o.only = store.WorkspaceOf(ctx)
	}
	o.table, err = t.open(ctx, s.engine)
	return o, err
}

// workspace returns the context's workspace as stored in the table. ok is false if the whole
// table belongs to another workspace.
func (o *userTable) workspace(ctx context.Context) (name string, ok bool) {
	name = store.WorkspaceOf(ctx)
	if o.space != "" {
		return "", name == o.space
	}
	return name, true
}

// row reads a row of the user's table.
func (o *userTable) row(ctx context.Context, tx *store.Tx, id string) (store.UserRow, error) {
	space, ok := o.workspace(ctx)
	if !ok {
		return store.UserRow{}, o.missing(id)
	}
	var conn store.Conn
	if tx != nil {
		conn = tx.Conn()
	}
	row, found, err := o.table.Read(ctx, conn, space, id)
	if err == nil && !found {
		err = o.missing(id)
	}
	return row, err
}

func (o *userTable) missing(id string) error {
	return fault.New(fault.NotFound, "%s %q does not exist", o.bound.config.Workflow, id)
}

// withRow returns an entity with the status, version and data of the user's row.
func withRow(e entities.Entity, row store.UserRow) entities.Entity {
	e.Status, e.Version, e.Data = row.Status, row.Version, row.Data
	return e
}

func (o *userTable) get(ctx context.Context, id string) (entities.Entity, error) {
	row, err := o.row(ctx, nil, id)
	if err != nil {
		return entities.Entity{}, err
	}
	e, err := entities.Get(ctx, o.bound.engine, o.bound.config.Workflow, id)
	if fault.CodeOf(err) == fault.NotFound {
		e, err = entities.Entity{Lifecycle: o.bound.config.Workflow, ID: id, Claim: entities.Claim{Phase: entities.Free}}, nil
	}
	return withRow(e, row), err
}

// errMoved means that the user's row was changed between a read and the write.
var errMoved = errors.New("the row was changed concurrently")

// maxAttempts limits how often a write is retried after a concurrent change.
const maxAttempts = 5

func (o *userTable) take(ctx context.Context, a entities.ClaimArgs, also func(context.Context, *store.Tx, entities.Entity) error) (e entities.Entity, err error) {
	for range maxAttempts {
		if e, err = o.takeOnce(ctx, a, also); !errors.Is(err, errMoved) {
			return e, err
		}
	}
	return entities.Entity{}, fault.New(fault.Concurrency, "%s %q was changed concurrently during every attempt to claim it: try again", a.Lifecycle, a.ID)
}

func (o *userTable) takeOnce(ctx context.Context, a entities.ClaimArgs, also func(context.Context, *store.Tx, entities.Entity) error) (e entities.Entity, err error) {
	e, err = o.get(ctx, a.ID)
	if err != nil {
		return e, err
	}
	choice, offered := a.Choices[e.Status]
	switch {
	case e.Claim.Phase != entities.Free:
		return e, entities.ClaimFailed(e)
	case !offered:
		return e, stepUnavailable(e, a.Step)
	case a.ExpectVersion != nil && *a.ExpectVersion != e.Version:
		return e, events.Moved(a.Lifecycle+" "+a.ID, *a.ExpectVersion, e.Version)
	}
	from, expected := e.Status, e.Version
	// swap checks the version of the user's row; the companion row has versions of its own.
	a.ExpectVersion, a.Choices = nil, map[string]entities.Choice{from: choice}
	changed := false
	err = o.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := entities.Sync(ctx, tx, a.Lifecycle, a.ID, from); err != nil {
			return err
		}
		var err error
		if e, err = entities.Take(ctx, tx, a); err != nil {
			return err
		}
		changed = true
		if err := o.swap(ctx, tx, a.ID, from, choice.Into, &expected); err != nil {
			return err
		}
		row, err := o.row(ctx, tx, a.ID)
		if err != nil {
			return err
		}
		e = withRow(e, row)
		if also == nil {
			return nil
		}
		return also(ctx, tx, e)
	})
	return committed(e, changed, err), err
}

// swap moves the user's row, or returns [errMoved]. A nil version accepts any.
func (o *userTable) swap(ctx context.Context, tx *store.Tx, id, from, to string, expected *int64) error {
	space, ok := o.workspace(ctx)
	if !ok {
		return o.missing(id)
	}
	_, moved, err := o.table.Move(ctx, tx.Conn(), space, id, from, to, expected)
	if err == nil && !moved {
		err = errMoved
	}
	return err
}

func (o *userTable) end(ctx context.Context, at store.Partition, a entities.EndArgs, claim string, commits []commit) (e entities.Entity, err error) {
	ctx, a.Claim = store.InWorkspace(ctx, at.Workspace), claim
	changed := false
	err = o.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var again bool
		var err error
		e, again, err = entities.End(ctx, tx, at, a)
		if changed = err == nil && !again; !changed {
			failed := o.refresh(ctx, tx, &e)
			if fault.CodeOf(failed) == fault.NotFound { // the row was deleted
				failed = nil
			}
			return errors.Join(err, failed)
		}
		if e.Claim.Phase == entities.Free {
			if err := runCommits(ctx, tx, commits); err != nil {
				return err
			}
		}
		return o.follow(ctx, tx, &e, claim, a.How == entities.Success)
	})
	if errors.Is(err, errMoved) {
		err = fault.New(fault.Concurrency, "%s %q was moved out of claim status %q while it was claimed, so the result of the operation was not recorded: read the entity again", a.Lifecycle, a.ID, claim)
	}
	return committed(e, changed, err), err
}

// follow makes the user's row follow the companion row, which was moved out of a claim. A row that
// was already moved by another writer is left unchanged, unless must is set. With must, the
// row's version also advances if the step ends in the status claim.
func (o *userTable) follow(ctx context.Context, tx *store.Tx, e *entities.Entity, claim string, must bool) error {
	if e.Claim.Phase == entities.Free && (must || e.Status != claim) {
		if err := o.swap(ctx, tx, e.ID, claim, e.Status, nil); err != nil && (must || !errors.Is(err, errMoved)) {
			return err
		}
	}
	err := o.refresh(ctx, tx, e)
	if !must && fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// refresh refreshes an entity from the user's row.
func (o *userTable) refresh(ctx context.Context, tx *store.Tx, e *entities.Entity) error {
	row, err := o.row(ctx, tx, e.ID)
	if err == nil {
		*e = withRow(*e, row)
	}
	return err
}

func (o *userTable) move(ctx context.Context, a entities.TransitionArgs, commits []commit) (e entities.Entity, err error) {
	row, err := o.row(ctx, nil, a.ID)
	if err != nil {
		return e, err
	}
	if !slices.Contains(a.From, row.Status) {
		return e, fault.New(fault.InvalidTransition, "%s %q has status %q, but this transition requires %s", a.Lifecycle, a.ID, row.Status, strings.Join(a.From, " or ")).
			With("status", row.Status).With("version", row.Version)
	}
	expected := a.ExpectVersion
	// swap checks the version of the user's row; the companion row has versions of its own, and no data.
	a.From, a.ExpectVersion, a.Data = []string{row.Status}, nil, nil
	changed := false
	err = o.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		companion, err := entities.Sync(ctx, tx, a.Lifecycle, a.ID, row.Status)
		if err != nil {
			return err
		}
		if companion.Claim.Phase != entities.Free {
			return entities.ClaimFailed(companion)
		}
		if e, err = entities.Transition(ctx, tx, a); err != nil {
			return err
		}
		changed = true
		if err := o.swap(ctx, tx, a.ID, row.Status, a.To, expected); err != nil {
			return err
		}
		if err := runCommits(ctx, tx, commits); err != nil {
			return err
		}
		now, err := o.row(ctx, tx, a.ID)
		e = withRow(e, now)
		return err
	})
	if errors.Is(err, errMoved) {
		return entities.Entity{}, o.moved(ctx, a.ID, expected, row)
	}
	return committed(e, changed, err), err
}

// moved returns the error for a write that lost against a concurrent change of the row.
func (o *userTable) moved(ctx context.Context, id string, expected *int64, was store.UserRow) error {
	now, err := o.row(ctx, nil, id)
	if err != nil {
		return err
	}
	if expected == nil {
		expected = &was.Version
	}
	return events.Moved(o.bound.config.Workflow+" "+id, *expected, now.Version)
}

func (o *userTable) recover(ctx context.Context, r recovery) (e entities.Entity, freed bool, err error) {
	ctx = store.InWorkspace(ctx, r.Workspace)
	err = o.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		if e, freed, err = r.do(ctx, tx); err != nil || !freed || e.Claim.Phase != entities.Free {
			return err
		}
		if r.also != nil {
			if err := r.also(ctx, tx); err != nil {
				return err
			}
		}
		return o.letGo(ctx, tx, &e, r.claim)
	})
	return e, freed && err == nil, err
}

// letGo is follow for a row whose operation ends without a holder.
func (o *userTable) letGo(ctx context.Context, tx *store.Tx, e *entities.Entity, claim string) error {
	err := o.follow(ctx, tx, e, claim, false)
	if fault.CodeOf(err) == fault.Validation {
		return refusedRelease{fmt.Errorf("%s %q cannot be released to status %q: %w", e.Lifecycle, e.ID, e.Status, err)}
	}
	return err
}

// refusedRelease is the error of a user's table, for example of a constraint, that refuses to release a row.
type refusedRelease struct{ error }

func (r refusedRelease) Unwrap() error { return r.error }

func (o *userTable) unpark(ctx context.Context, tx *store.Tx, at store.Partition, a entities.UnparkArgs, claim string) (entities.Entity, error) {
	e, err := entities.Unpark(ctx, tx, at, a)
	if err != nil {
		return e, err
	}
	err = o.follow(ctx, tx, &e, claim, a.How == entities.Success)
	if errors.Is(err, errMoved) {
		err = fault.New(fault.Concurrency, "%s %q was moved out of claim status %q while it was claimed: read the entity again", a.Lifecycle, a.ID, claim)
	}
	return e, err
}

func (o *userTable) withdraw(ctx context.Context, at store.Partition, a entities.WithdrawArgs, also func(context.Context, *store.Tx, entities.Entity) error) (e entities.Entity, done bool, err error) {
	err = o.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		if e, done, err = entities.Withdraw(ctx, tx, at, a); err != nil || !done {
			return err
		}
		if err := o.letGo(ctx, tx, &e, a.Claim); err != nil || also == nil {
			return err
		}
		return also(ctx, tx, e)
	})
	return e, done && err == nil, err
}

// adoptLimit limits how many rows of a user table a sweep reads.
const adoptLimit = 1000

// adopt takes leases on rows of the user's table that are in a claim status without a claim. from is how many rows in claim
// statuses it leaves out.
func (o *userTable) adopt(ctx context.Context, workspace string, from int) (n, next int, err error) {
	var claims []string
	for _, c := range o.bound.config.Claims() {
		claims = append(claims, c.Into)
	}
	if len(claims) == 0 || workspace != "" && o.space != "" && o.space != workspace {
		return 0, 0, nil
	}
	rows, err := o.table.In(ctx, cmp.Or(o.only, workspace), claims, from+adoptLimit)
	if err != nil {
		return 0, from, err
	}
	if len(rows) == from+adoptLimit {
		next = len(rows)
	}
	for _, row := range rows[min(from, len(rows)):] {
		space := row.Workspace
		if o.space != "" {
			space = o.space
		}
		adopted, failed := o.adoptRow(store.InWorkspace(ctx, space), row)
		if err = errors.Join(err, failed); adopted {
			n++
		}
	}
	return n, next, err
}

// adoptRow takes a lease on a row in a claim status without a claim, and reports whether it was one.
func (o *userTable) adoptRow(ctx context.Context, row store.UserRow) (bool, error) {
	at, err := o.bound.engine.Partition(ctx, store.Write)
	if err != nil {
		return false, err
	}
	companion, err := entities.Get(ctx, o.bound.engine, o.bound.config.Workflow, row.ID)
	switch {
	case err == nil && companion.Claim.Phase != entities.Free:
		return false, nil // it is claimed
	case err != nil && fault.CodeOf(err) != fault.NotFound:
		return false, err
	}
	adopted := false
	err = o.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		companion, err := entities.Sync(ctx, tx, o.bound.config.Workflow, row.ID, row.Status)
		if err != nil {
			return err
		}
		now, err := o.row(ctx, tx, row.ID) // under the lock of the companion row
		if err != nil {
			return err
		}
		if companion.Claim.Phase != entities.Free || now.Status != row.Status {
			return errMoved
		}
		adopted, err = o.bound.adoptOne(ctx, tx, at, row.ID, row.Status)
		return err
	})
	if errors.Is(err, errMoved) || fault.CodeOf(err) == fault.NotFound {
		return false, nil // it was claimed, moved or deleted
	}
	return adopted && err == nil, err
}
