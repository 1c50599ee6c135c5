package lifecycleconfig

import (
	"cmp"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

var configFields = &configdoc.Fields[Config]{
	What:     "a config",
	Required: []string{"workflow", "owning_module", "status_types", "initial_status", "steps"},
	Read: map[string]func(*configdoc.Reader, *Config, *configdoc.Node, string){
		"workflow":      func(r *configdoc.Reader, c *Config, n *configdoc.Node, p string) { c.Workflow, _ = r.Text(n, p) },
		"owning_module": func(r *configdoc.Reader, c *Config, n *configdoc.Node, p string) { c.OwningModule, _ = r.Text(n, p) },
		"status_types": func(r *configdoc.Reader, c *Config, n *configdoc.Node, p string) {
			c.StatusTypes = r.Texts(n, p, false)
		},
		"initial_status": func(r *configdoc.Reader, c *Config, n *configdoc.Node, p string) { c.InitialStatus, _ = r.Text(n, p) },
		"entity_table":   readTable,
		"columns":        readColumns,
		"janitor":        readJanitor,
		"steps":          readSteps,
		"after_effects":  readAfterEffects,
		"data_history":   readDataHistory,
	},
}

// readDataHistory reads whether changes of data are recorded.
func readDataHistory(r *configdoc.Reader, c *Config, n *configdoc.Node, path string) {
	if r.Is(n, configdoc.Boolean, path, "data_history must be true or false") {
		c.NoDataHistory = n.Text == "false"
	}
}

func readSteps(r *configdoc.Reader, c *Config, n *configdoc.Node, path string) {
	if !r.Is(n, configdoc.Array, path, "steps must be a list of steps") {
		return
	}
	c.Steps = make([]Step, len(n.Items))
	for i, it := range n.Items {
		configdoc.Read(r, stepFields, &c.Steps[i], it, configdoc.Item(path, i))
	}
}

var stepFields = &configdoc.Fields[Step]{
	What:     "a step",
	Required: []string{"step_id", "step_key", "status", "successful_state"},
	Read: map[string]func(*configdoc.Reader, *Step, *configdoc.Node, string){
		"step_id":                func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { s.ID, _ = r.Integer(n, p) },
		"step_key":               func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { s.Key, _ = r.Text(n, p) },
		"status":                 func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { s.Status = r.Texts(n, p, true) },
		"serialized":             func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { s.Serialized = r.Texts(n, p, true) },
		"timeout":                func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { s.Timeout = duration(r, n, p) },
		"successful_claim_state": readClaim,
		"claim_state":            readClaim,
		"successful_state": func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) {
			per(r, &s.Success, n, p, (*configdoc.Reader).Text)
		},
		"failed_state": func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) {
			per(r, &s.Failed, n, p, (*configdoc.Reader).Text)
		},
		"action": func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) {
			per(r, &s.Action, n, p, (*configdoc.Reader).Text)
		},
		"validation": func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) {
			per(r, &s.Validation, n, p, (*configdoc.Reader).Text)
		},
		"success_after_effect": func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) {
			per(r, &s.AfterEffect, n, p, (*configdoc.Reader).Text)
		},
	},
}

// readClaim reads the claim, which has two field names.
func readClaim(r *configdoc.Reader, s *Step, n *configdoc.Node, path string) {
	if s.Claim.All != nil || s.Claim.By != nil {
		r.Refuse(configdoc.RuleConflict, path, n.At, "claim_state and successful_claim_state are the same field: keep one of them")
		return
	}
	per(r, &s.Claim, n, path, claim)
}

// claim reads the two statuses of a claim.
func claim(r *configdoc.Reader, n *configdoc.Node, path string) (c Claim, ok bool) {
	if n.Kind == configdoc.Refused {
		return c, false
	}
	pair := n.Items
	if len(pair) != 2 || pair[0].Kind != configdoc.Text || pair[1].Kind != configdoc.Text {
		r.Refuse("R1", path, n.At, "a claim must be a list of two strings, [claim_into, revert_to], got %s", describe(n))
		return c, false
	}
	return Claim{Into: pair[0].Text, Revert: pair[1].Text}, true
}

// describe describes an invalid value for a claim.
func describe(n *configdoc.Node) string {
	switch {
	case n.Kind != configdoc.Array:
		return n.Kind.String()
	case len(n.Items) != 2:
		return "a list of " + configdoc.Counted(len(n.Items))
	}
	return "a list of " + n.Items[0].Kind.String() + " and " + n.Items[1].Kind.String()
}

// readTable reads entity_table, as a name or as an object. Columns may also be given beside
// it.
func readTable(r *configdoc.Reader, c *Config, n *configdoc.Node, path string) {
	t := c.table()
	if n.Kind != configdoc.Object {
		if r.Is(n, configdoc.Text, path, "entity_table must be the name of a table, or an object with name, columns and workspace") {
			t.Name = n.Text
		}
		return
	}
	configdoc.Read(r, tableFields, t, n, path)
}

// table returns the table, and creates it if there is none.
func (c *Config) table() *Table {
	if c.Table == nil {
		c.Table = &Table{}
	}
	return c.Table
}

var tableFields = &configdoc.Fields[Table]{
	What:     "entity_table",
	Required: []string{"name"},
	Read: map[string]func(*configdoc.Reader, *Table, *configdoc.Node, string){
		"name":      func(r *configdoc.Reader, t *Table, n *configdoc.Node, p string) { t.Name, _ = r.Text(n, p) },
		"workspace": func(r *configdoc.Reader, t *Table, n *configdoc.Node, p string) { t.InWorkspace, _ = nonEmpty(r, n, p) },
		"columns": func(r *configdoc.Reader, t *Table, n *configdoc.Node, p string) {
			configdoc.Read(r, columnFields, t, n, p)
		},
	},
}

func readColumns(r *configdoc.Reader, c *Config, n *configdoc.Node, path string) {
	configdoc.Read(r, columnFields, c.table(), n, path)
}

var columnFields = &configdoc.Fields[Table]{
	What: "columns",
	Read: map[string]func(*configdoc.Reader, *Table, *configdoc.Node, string){
		"id":        column(func(t *Table) *string { return &t.ID }),
		"status":    column(func(t *Table) *string { return &t.Status }),
		"version":   column(func(t *Table) *string { return &t.Version }),
		"workspace": column(func(t *Table) *string { return &t.Workspace }),
	},
}

// column returns a reader for the name of a column. A column can be set twice only because columns
// may be given in two places.
func column(of func(*Table) *string) func(*configdoc.Reader, *Table, *configdoc.Node, string) {
	return func(r *configdoc.Reader, t *Table, n *configdoc.Node, path string) {
		name, ok := nonEmpty(r, n, path)
		switch {
		case !ok:
		case *of(t) != "":
			r.Refuse(configdoc.RuleConflict, path, n.At, "column %s is given both inside and outside entity_table: keep one of them", configdoc.Last(path))
		default:
			*of(t) = name
		}
	}
}

// finishTable refuses columns without a table and a contradictory workspace, and fills in the
// defaults.
func finishTable(r *configdoc.Reader, c *Config, root *configdoc.Node) {
	t := c.Table
	if t == nil {
		return
	}
	if !root.Has("entity_table") {
		r.Refuse(configdoc.RuleRequired, "/columns", r.At["/columns"], "columns requires entity_table: add it, or remove columns")
	}
	if t.Workspace != "" && t.InWorkspace != "" {
		r.Refuse(configdoc.RuleConflict, "/entity_table/workspace", r.At["/entity_table/workspace"],
			"a table has either a workspace column or one workspace: keep one of them")
	}
	t.ID, t.Status, t.Version = cmp.Or(t.ID, "id"), cmp.Or(t.Status, "status"), cmp.Or(t.Version, "version")
	if t.Workspace == "" && t.InWorkspace == "" {
		t.InWorkspace = "default"
	}
}

// readJanitor reads "standard", or an object with every and stuck_after.
func readJanitor(r *configdoc.Reader, c *Config, n *configdoc.Node, path string) {
	c.Janitor = &Janitor{}
	switch {
	case n.Kind == configdoc.Text && n.Text == "standard":
	case n.Kind == configdoc.Text:
		r.Refuse(configdoc.RuleType, path, n.At, "janitor must be \"standard\" or an object with every and stuck_after, got %s", configdoc.Show(n.Text))
	default:
		configdoc.Read(r, janitorFields, c.Janitor, n, path)
	}
}

var janitorFields = &configdoc.Fields[Janitor]{
	What: "janitor",
	Read: map[string]func(*configdoc.Reader, *Janitor, *configdoc.Node, string){
		"every":       func(r *configdoc.Reader, j *Janitor, n *configdoc.Node, p string) { j.Every = duration(r, n, p) },
		"stuck_after": func(r *configdoc.Reader, j *Janitor, n *configdoc.Node, p string) { j.StuckAfter = duration(r, n, p) },
	},
}

// readAfterEffects reads the delivery options of after-effects, by handler name.
func readAfterEffects(r *configdoc.Reader, c *Config, n *configdoc.Node, path string) {
	if !r.Is(n, configdoc.Object, path, "after_effects must be an object of handlers with their delivery options") {
		return
	}
	c.AfterEffects = make(map[string]AfterEffect)
	for _, m := range n.Members {
		var a AfterEffect
		configdoc.Read(r, afterEffectFields, &a, m.Value, configdoc.Child(path, m.Name))
		c.AfterEffects[m.Name] = a
	}
}

var afterEffectFields = &configdoc.Fields[AfterEffect]{
	What: "an after-effect",
	Read: map[string]func(*configdoc.Reader, *AfterEffect, *configdoc.Node, string){
		"max_attempts": func(r *configdoc.Reader, a *AfterEffect, n *configdoc.Node, p string) {
			var ok bool
			if a.MaxAttempts, ok = r.Integer(n, p); ok && a.MaxAttempts == 0 {
				r.Refuse("R16", p, n.At, "max_attempts must be between 1 and %d, got 0: leave it out for the default", MaxAttempts)
			}
		},
		"backoff": func(r *configdoc.Reader, a *AfterEffect, n *configdoc.Node, p string) { a.Backoff = duration(r, n, p) },
		"max_backoff": func(r *configdoc.Reader, a *AfterEffect, n *configdoc.Node, p string) {
			a.MaxBackoff = duration(r, n, p)
		},
		"on_refusal": func(r *configdoc.Reader, a *AfterEffect, n *configdoc.Node, p string) {
			a.OnRefusal, _ = nonEmpty(r, n, p)
		},
		"on_missing": func(r *configdoc.Reader, a *AfterEffect, n *configdoc.Node, p string) {
			a.OnMissing, _ = nonEmpty(r, n, p)
		},
	},
}
