package lifecycleengine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// A published lifecycle may have its entities in a user table, if the node's configuration declares the table. The config
// has only the name of the declaration, so that a caller of the API cannot reach other tables or columns.

// checkTables refuses declarations of tables that cannot be used.
func checkTables(ctx context.Context, e *engine.Engine, tables map[string]EntityTable) error {
	taken := make(map[string]store.UserTable)
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		t := tables[name]
		if t.Workspace != "" && t.InWorkspace != "" {
			return fault.New(fault.Validation, "entity table %q has both a workspace column and a workspace: keep one of them", name)
		}
		o, err := t.open(ctx, e)
		if err != nil {
			return fmt.Errorf("entity table %q: %w", name, err)
		}
		for _, other := range slices.Sorted(maps.Keys(taken)) {
			if same := taken[other]; o.SharesRows(same) {
				return fault.New(fault.Validation, "entity tables %q and %q %s: declare only one of them", other, name, sharedRows(same, o))
			}
		}
		taken[name] = o
	}
	return nil
}

// sharedRows says how two tables that share rows are related.
func sharedRows(a, b store.UserTable) string {
	if a.FullName() == b.FullName() { // they may be declared with or without the schema
		return "are the same table " + a.FullName()
	}
	return fmt.Sprintf("share rows, because %s and %s are related by partitioning or inheritance", a.FullName(), b.FullName())
}

// storeOf returns the store of a published lifecycle in the context's workspace. If its table cannot be used, the store
// refuses every call and says why, and the config can still be read.
func (d *publishedSet) storeOf(ctx context.Context, s *bound) (entityStore, error) {
	if s.config.Table == nil {
		return &builtinTable{bound: s}, nil
	}
	t, ok := d.tables[s.config.Table.Name]
	space := store.WorkspaceOf(ctx)
	if !ok {
		return noTable{fault.New(fault.Unavailable, "lifecycle %q has its entities in table %q, which the configuration of this server does not declare: declare it with --entity-table",
			s.config.Workflow, s.config.Table.Name).With("table", s.config.Table.Name)}, nil
	}
	if only := t.workspace(); only != "" && only != space {
		return noTable{fault.New(fault.Unavailable, "table %q of lifecycle %q belongs to workspace %q, not to %q: declare a workspace column, or use another table",
			s.config.Table.Name, s.config.Workflow, only, space).With("table", s.config.Table.Name)}, nil
	}
	o, err := newUserTable(ctx, s, t)
	if err == nil {
		return o, nil
	}
	if code := fault.CodeOf(err); code == fault.Validation || code == fault.DatabaseDenied {
		return noTable{fault.New(fault.Unavailable, "table %q of lifecycle %q cannot be used: %s", s.config.Table.Name, s.config.Workflow, err).
			With("table", s.config.Table.Name).Wrap(err)}, nil
	}
	return nil, err
}

// tableViolations returns why the table of a config cannot be used.
func (s *bound) tableViolations() (all []lifecycleconfig.Violation) {
	refuse := func(path, message string) {
		all = append(all, lifecycleconfig.Violation{Rule: "table", Path: path, Message: message})
	}
	for _, path := range s.config.TableDetails() {
		refuse(path, "the columns and the workspace of a table are set by the configuration of the server: keep only the name of the table")
	}
	if none, ok := s.store.(noTable); ok {
		refuse("/entity_table", none.why.Message)
	}
	if name := s.sharesTable(); name != "" {
		refuse("/entity_table", fmt.Sprintf("table %q already has the entities of lifecycle %q of this program: use another table", s.config.Table.Name, name))
	}
	return all
}

// sharesTable returns a lifecycle of the program whose rows are those of s, or "".
func (s *bound) sharesTable() string {
	o, ok := s.store.(*userTable)
	for _, name := range s.registry.names() {
		other, own := s.registry.boundTo(name).store.(*userTable)
		if ok && own && other.table.SharesRows(o.table) && (other.space == "" || other.space == o.only) {
			return name
		}
	}
	return ""
}

// addRows makes the rows of a published lifecycle known to the janitor, and reports whether this node serves the lifecycle.
func (d *publishedSet) addRows(p publishedConfig, c *lifecycleconfig.Config) bool {
	if c.Table == nil {
		return true
	}
	key := publishedKey{p.workspace, p.name}
	t, usable := d.tables[c.Table.Name]
	if only := t.workspace(); usable && only != "" {
		usable = only == p.workspace
	}
	d.mu.Lock()
	warn := !usable && d.rows[key] == ""
	d.rows[key] = c.Table.Name
	if !usable {
		d.unserved[key] = true
		for _, names := range handlerNames(c) {
			for _, name := range names {
				d.withheld[publishedKey{p.workspace, name}] = true
			}
		}
	}
	d.mu.Unlock()
	if warn {
		d.registry.engine.Log().Error("a published lifecycle is not served, because the configuration does not declare its table for its workspace", "lifecycle", p.name, "workspace", p.workspace, "table", c.Table.Name)
	}
	return usable
}

// servedHandlers returns the handlers whose tasks this node hands out: not those of a lifecycle that it does not serve, because
// another node can.
func (d *publishedSet) servedHandlers(workspace string, names []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return d.withheld[publishedKey{workspace, name}] })
}

// servesEverywhere reports whether this node serves a name in every workspace that has published it.
func (d *publishedSet) servesEverywhere(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.unserved {
		if key.name == name {
			return false
		}
	}
	return true
}

// serves reports whether this node serves a lifecycle in a workspace.
func (b *registry) serves(workspace, name string) bool {
	if b.published == nil {
		return true
	}
	b.published.mu.Lock()
	defer b.published.mu.Unlock()
	return !b.published.unserved[publishedKey{workspace, name}]
}

// servedTurns returns the turns whose operations this node can end: not those of lifecycles that it does not serve in
// a workspace.
func (b *registry) servedTurns(turns []lease.Turn) []lease.Turn {
	if b.published == nil {
		return turns
	}
	b.published.mu.Lock()
	defer b.published.mu.Unlock()
	if len(b.published.unserved) == 0 {
		return turns
	}
	not := make(map[lease.Turn]bool, len(b.published.unserved))
	for key := range b.published.unserved {
		not[lease.Turn{Name: entities.QueueOf(key.name), Workspace: key.workspace}] = true
	}
	return slices.DeleteFunc(turns, func(t lease.Turn) bool { return not[t] })
}

// publishedRows returns the published lifecycles that this node serves with rows in user tables.
func (b *registry) publishedRows() (all []publishedKey) {
	if b.published == nil {
		return nil
	}
	b.published.mu.Lock()
	defer b.published.mu.Unlock()
	for key := range b.published.rows {
		if !b.published.unserved[key] {
			all = append(all, key)
		}
	}
	slices.SortFunc(all, func(x, y publishedKey) int { return strings.Compare(x.workspace+"/"+x.name, y.workspace+"/"+y.name) })
	return all
}

// patch applies the merge patch of a remote handler when the step is settled: to the entity's data, or to the columns of
// its row.
func (s *bound) patch(w *work, e entities.Entity, patch []byte) (err error) {
	o, own := s.store.(*userTable)
	if !own {
		w.data, err = strictjson.Merge(e.Data, patch)
		return err
	}
	if err := strictjson.Object(patch); err != nil {
		return err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(patch, &values); err != nil {
		return err
	}
	for name := range values {
		if !slices.Contains(o.write, name) {
			return fault.New(fault.Validation, "column %q of table %q cannot be set by a handler: the server's configuration allows %s", name, s.config.Table.Name, writable(o.write))
		}
	}
	w.commits = append(w.commits, func(ctx context.Context, tx *store.Tx) error {
		space, ok := o.workspace(ctx)
		if !ok {
			return o.missing(e.ID)
		}
		found, err := o.table.Write(ctx, tx.Conn(), space, e.ID, values)
		if err == nil && !found {
			err = o.missing(e.ID)
		}
		return err
	})
	return nil
}

func writable(columns []string) string {
	if len(columns) == 0 {
		return "none"
	}
	return strings.Join(columns, ", ")
}

// noTable is the store of a lifecycle whose table cannot be used on this node.
type noTable struct{ why *fault.Error }

func (n noTable) get(context.Context, string) (entities.Entity, error) {
	return entities.Entity{}, n.why
}

func (n noTable) take(context.Context, entities.ClaimArgs, func(context.Context, *store.Tx, entities.Entity) error) (entities.Entity, error) {
	return entities.Entity{}, n.why
}

func (n noTable) end(context.Context, store.Partition, entities.EndArgs, string, []commit) (entities.Entity, error) {
	return entities.Entity{}, n.why
}

func (n noTable) move(context.Context, entities.TransitionArgs, []commit) (entities.Entity, error) {
	return entities.Entity{}, n.why
}

func (n noTable) recover(context.Context, recovery) (entities.Entity, bool, error) {
	return entities.Entity{}, false, n.why
}

func (n noTable) unpark(context.Context, *store.Tx, store.Partition, entities.UnparkArgs, string) (entities.Entity, error) {
	return entities.Entity{}, n.why
}

func (n noTable) withdraw(context.Context, store.Partition, entities.WithdrawArgs, func(context.Context, *store.Tx, entities.Entity) error) (entities.Entity, bool, error) {
	return entities.Entity{}, false, n.why
}

func (n noTable) adopt(context.Context, string, int) (int, int, error) { return 0, 0, n.why }
