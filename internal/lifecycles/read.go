package lifecycles

import "cmp"

var configFields = &fields[Config]{
	what:     "a config",
	required: []string{"workflow", "owning_module", "status_types", "initial_status", "steps"},
	read: map[string]func(*reader, *Config, *node, string){
		"workflow":       func(r *reader, c *Config, n *node, p string) { c.Workflow, _ = r.text(n, p) },
		"owning_module":  func(r *reader, c *Config, n *node, p string) { c.OwningModule, _ = r.text(n, p) },
		"status_types":   func(r *reader, c *Config, n *node, p string) { c.StatusTypes = r.texts(n, p, false) },
		"initial_status": func(r *reader, c *Config, n *node, p string) { c.InitialStatus, _ = r.text(n, p) },
		"entity_table":   readTable,
		"columns":        readColumns,
		"janitor":        readJanitor,
		"steps":          readSteps,
	},
}

func readSteps(r *reader, c *Config, n *node, path string) {
	if !r.is(n, array, path, "steps is a list of steps") {
		return
	}
	c.Steps = make([]Step, len(n.items))
	for i, it := range n.items {
		read(r, stepFields, &c.Steps[i], it, item(path, i))
	}
}

var stepFields = &fields[Step]{
	what:     "a step",
	required: []string{"step_id", "step_key", "status", "successful_state"},
	read: map[string]func(*reader, *Step, *node, string){
		"step_id":                func(r *reader, s *Step, n *node, p string) { s.ID = r.integer(n, p) },
		"step_key":               func(r *reader, s *Step, n *node, p string) { s.Key, _ = r.text(n, p) },
		"status":                 func(r *reader, s *Step, n *node, p string) { s.Status = r.texts(n, p, true) },
		"serialized":             func(r *reader, s *Step, n *node, p string) { s.Serialized = r.texts(n, p, true) },
		"timeout":                func(r *reader, s *Step, n *node, p string) { s.Timeout = r.duration(n, p) },
		"successful_claim_state": readClaim,
		"claim_state":            readClaim,
		"successful_state":       func(r *reader, s *Step, n *node, p string) { per(r, &s.Success, n, p, (*reader).text) },
		"failed_state":           func(r *reader, s *Step, n *node, p string) { per(r, &s.Failed, n, p, (*reader).text) },
		"action":                 func(r *reader, s *Step, n *node, p string) { per(r, &s.Action, n, p, (*reader).text) },
		"validation":             func(r *reader, s *Step, n *node, p string) { per(r, &s.Validation, n, p, (*reader).text) },
		"success_after_effect":   func(r *reader, s *Step, n *node, p string) { per(r, &s.AfterEffect, n, p, (*reader).text) },
	},
}

// readClaim reads the claim, which has two names.
func readClaim(r *reader, s *Step, n *node, path string) {
	if s.Claim.All != nil || s.Claim.By != nil {
		r.refuse(ruleConflict, path, n.at, "claim_state and successful_claim_state are two names of one field: keep one of them")
		return
	}
	per(r, &s.Claim, n, path, (*reader).claim)
}

// claim reads the two statuses of a claim.
func (r *reader) claim(n *node, path string) (c Claim, ok bool) {
	if n.kind == refused {
		return c, false
	}
	pair := n.items
	if len(pair) != 2 || pair[0].kind != text || pair[1].kind != text {
		r.refuse("R1", path, n.at, "a claim is a list of two texts, [claim_into, revert_to], and this is %s", describe(n))
		return c, false
	}
	return Claim{Into: pair[0].text, Revert: pair[1].text}, true
}

// describe says what stands where a claim is wanted.
func describe(n *node) string {
	switch {
	case n.kind != array:
		return n.kind.String()
	case len(n.items) != 2:
		return "a list of " + counted(len(n.items))
	}
	return "a list of " + n.items[0].kind.String() + " and " + n.items[1].kind.String()
}

// readTable reads entity_table, as a name or as an object. Columns are also read
// where they stand beside it.
func readTable(r *reader, c *Config, n *node, path string) {
	t := c.table()
	if n.kind != object {
		if r.is(n, text, path, "entity_table is the name of a table, or name, columns and workspace") {
			t.Name = n.text
		}
		return
	}
	read(r, tableFields, t, n, path)
}

// table returns the table, and makes it with its defaults if there is none.
func (c *Config) table() *Table {
	if c.Table == nil {
		c.Table = &Table{}
	}
	return c.Table
}

var tableFields = &fields[Table]{
	what:     "entity_table",
	required: []string{"name"},
	read: map[string]func(*reader, *Table, *node, string){
		"name":      func(r *reader, t *Table, n *node, p string) { t.Name, _ = r.text(n, p) },
		"workspace": func(r *reader, t *Table, n *node, p string) { t.InWorkspace, _ = r.filled(n, p) },
		"columns":   func(r *reader, t *Table, n *node, p string) { read(r, columnFields, t, n, p) },
	},
}

func readColumns(r *reader, c *Config, n *node, path string) {
	read(r, columnFields, c.table(), n, path)
}

var columnFields = &fields[Table]{
	what: "columns",
	read: map[string]func(*reader, *Table, *node, string){
		"id":        column(func(t *Table) *string { return &t.ID }),
		"status":    column(func(t *Table) *string { return &t.Status }),
		"version":   column(func(t *Table) *string { return &t.Version }),
		"workspace": column(func(t *Table) *string { return &t.Workspace }),
	},
}

// column reads the name of a column. Only where columns stand in two places can
// one be there already.
func column(of func(*Table) *string) func(*reader, *Table, *node, string) {
	return func(r *reader, t *Table, n *node, path string) {
		name, ok := r.filled(n, path)
		switch {
		case !ok:
		case *of(t) != "":
			r.refuse(ruleConflict, path, n.at, "the column %s is given beside entity_table and inside it: keep one of them", last(path))
		default:
			*of(t) = name
		}
	}
}

// finishTable refuses columns without a table, and two answers to which
// workspace it is; and fills in what was left out.
func (r *reader) finishTable(c *Config, root *node) {
	t := c.Table
	if t == nil {
		return
	}
	if !root.has("entity_table") {
		r.refuse(ruleRequired, "/columns", r.at["/columns"], "columns are those of entity_table: add it, or take them out")
	}
	if t.Workspace != "" && t.InWorkspace != "" {
		r.refuse(ruleConflict, "/entity_table/workspace", r.at["/entity_table/workspace"],
			"the workspace is in a column, or one for the whole table: keep one of them")
	}
	t.ID, t.Status, t.Version = cmp.Or(t.ID, "id"), cmp.Or(t.Status, "status"), cmp.Or(t.Version, "version")
	if t.Workspace == "" && t.InWorkspace == "" {
		t.InWorkspace = "default"
	}
}

// readJanitor reads "standard", or how often and after how long.
func readJanitor(r *reader, c *Config, n *node, path string) {
	c.Janitor = &Janitor{}
	switch {
	case n.kind == text && n.text == "standard":
	case n.kind == text:
		r.refuse(ruleType, path, n.at, "janitor is standard, or every and stuck_after; this is %s", show(n.text))
	default:
		read(r, janitorFields, c.Janitor, n, path)
	}
}

var janitorFields = &fields[Janitor]{
	what: "janitor",
	read: map[string]func(*reader, *Janitor, *node, string){
		"every":       func(r *reader, j *Janitor, n *node, p string) { j.Every = r.duration(n, p) },
		"stuck_after": func(r *reader, j *Janitor, n *node, p string) { j.StuckAfter = r.duration(n, p) },
	},
}
