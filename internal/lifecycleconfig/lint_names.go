package lifecycleconfig

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// maxName is the maximum length of a name, in bytes.
const maxName = 255

// names checks R15.
func (l *linter) names() {
	c := l.c
	if l.name("/workflow", "workflow", c.Workflow) {
		l.workflow()
	}
	l.name("/owning_module", "owning_module", c.OwningModule)
	l.statusTypes()
	l.status("/initial_status", c.InitialStatus)
	l.table()
	if c.Janitor != nil {
		l.positive("/janitor/every", c.Janitor.Every)
		l.positive("/janitor/stuck_after", c.Janitor.StuckAfter)
		if d := c.Janitor.StuckAfter; d > 24*time.Hour {
			l.Refuse("R15", "/janitor/stuck_after", "stuck_after must be at most 24h, got %v", d)
		}
	}
	for i := range c.Steps {
		l.step(i, &c.Steps[i])
	}
}

// name refuses an invalid name.
func (l *linter) name(path, what, s string) bool {
	if !l.Given(path) {
		return true
	}
	why := ""
	switch {
	case s == "":
		why = "is empty: set a name"
	case len(s) > maxName:
		why = "is longer than 255 bytes: shorten it"
	case !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError):
		why = "contains a replacement character (U+FFFD) from a broken encoding: correct it"
	case strings.ContainsFunc(s, unicode.IsControl):
		why = "contains a control character, such as a line break: remove it"
	default:
		return true
	}
	l.Refuse("R15", path, "%s %s", what, why)
	return false
}

func (l *linter) workflow() {
	if strings.Contains(l.c.Workflow, "/") {
		l.Refuse("R15", "/workflow", "a workflow name must not contain a slash, got %s: use another character", configdoc.Show(l.c.Workflow))
	}
	if strings.HasPrefix(l.c.Workflow, "$") {
		l.Refuse("R15", "/workflow", "names that begin with $ are reserved, got %s: remove the $", configdoc.Show(l.c.Workflow))
	}
}

// maxCombinations limits the combinations of a step's statuses and requesters in a config. It keeps a small text from
// becoming a large graph.
const maxCombinations = 10_000

// countCombinations returns how many combinations of status and requester the steps have.
func (c *Config) countCombinations() (n int) {
	for i := range c.Steps {
		n += len(c.Steps[i].Status) * len(c.Steps[i].Offered())
	}
	return n
}

// fits refuses a config that is too large to check.
func (l *linter) fits() bool {
	n := l.c.countCombinations()
	if n > maxCombinations {
		l.Refuse("R15", "/steps", "the steps have %d combinations of status and requester, but the limit is %d: split the lifecycle", n, maxCombinations)
	}
	return n <= maxCombinations
}

func (l *linter) statusTypes() {
	if len(l.c.StatusTypes) == 0 && l.Given("/status_types") && !l.Partial() {
		l.Refuse("R15", "/status_types", "status_types is empty: name at least the initial status")
	}
	seen := make(map[string]bool)
	for i, s := range l.c.StatusTypes {
		path := configdoc.Item("/status_types", i)
		if l.name(path, "the status", s) && seen[s] && l.Given(path) {
			l.Refuse("R15", path, "%s is in status_types twice: keep one of them", configdoc.Show(s))
		}
		seen[s] = true
	}
}

// status refuses a status that is not a status type.
func (l *linter) status(path, s string) {
	if !l.Given(path) || !l.Given("/status_types") {
		return
	}
	if !l.known[s] {
		l.mistyped = true
		l.Refuse("R15", path, "%s is not in status_types: add it there, or correct it", configdoc.Show(s))
	}
}

func (l *linter) table() {
	t := l.c.Table
	if t == nil {
		return
	}
	path := "/entity_table"
	if p := configdoc.Child(path, "name"); l.IsText() && l.Given(p) {
		path = p
	}
	l.name(path, "the table", t.Name)
	for _, column := range []struct{ field, name string }{{"id", t.ID}, {"status", t.Status}, {"version", t.Version}, {"workspace", t.Workspace}} {
		for _, at := range []string{"/columns", "/entity_table/columns"} {
			if p := configdoc.Child(at, column.field); column.name != "" && l.IsText() && l.Given(p) {
				l.name(p, "the column", column.name)
			}
		}
	}
	l.sameColumn(t)
}

// sameColumn refuses a column that is used twice.
func (l *linter) sameColumn(t *Table) {
	columns := []string{t.ID, t.Status, t.Version, t.Workspace}
	for i, name := range columns {
		if name != "" && slices.Index(columns, name) < i {
			l.Refuse("R15", "/entity_table", "column %s is used twice: use a separate column for each", configdoc.Show(name))
		}
	}
}

// positive refuses a negative duration; 0 means the default.
func (l *linter) positive(path string, d time.Duration) {
	if d < 0 {
		l.Refuse("R15", path, "%s must be positive, got %v", configdoc.Last(path), d)
	}
}

func (l *linter) step(i int, s *Step) {
	l.name(stepPath(i, "step_key"), "the step_key", s.Key)
	l.positive(stepPath(i, "timeout"), s.Timeout)
	for j, r := range s.Serialized {
		l.name(configdoc.Item(stepPath(i, "serialized"), j), "the requester", r)
	}
	l.starts(i, s)
	l.fieldNames(s, uses(stepPath(i, "action"), s.Action), "the handler")
	l.fieldNames(s, uses(stepPath(i, "validation"), s.Validation), "the handler")
	l.fieldNames(s, uses(stepPath(i, "success_after_effect"), s.AfterEffect), "the handler")
	for _, u := range slices.Concat(uses(stepPath(i, "successful_state"), s.Success), uses(stepPath(i, "failed_state"), s.Failed)) {
		l.requester(s, u.path, u.requester, u.all)
		l.status(u.path, u.value)
	}
	for _, u := range uses(l.claimPath(i), s.Claim) {
		l.requester(s, u.path, u.requester, u.all)
	}
}

// starts checks where a step starts.
func (l *linter) starts(i int, s *Step) {
	path := stepPath(i, "status")
	if len(s.Status) == 0 && l.Given(path) && !l.Partial() {
		l.Refuse("R15", path, "the step has no status to start at: add one")
	}
	if len(s.Status) > 1 && (s.Claim.All != nil || len(s.Claim.By) > 0) {
		l.Refuse("R15", path, "a step with a claim must start at one status, got %d: write a step for each, with its own claim status", len(s.Status))
	}
	seen := make(map[string]bool)
	for j, status := range s.Status {
		at := configdoc.Item(path, j)
		if !l.Given(at) {
			at = path
		}
		l.status(at, status)
		if seen[status] {
			l.Refuse("R15", at, "%s is listed twice: keep one of them", configdoc.Show(status))
		}
		seen[status] = true
	}
}

func (l *linter) fieldNames(s *Step, all []use[string], what string) {
	for _, u := range all {
		l.requester(s, u.path, u.requester, u.all)
		l.name(u.path, what, u.value)
	}
}

// requester checks that a value is for a requester of the step.
func (l *linter) requester(s *Step, path, requester string, all bool) {
	if all || !l.name(path, "the requester", requester) || l.Partial() || s.Offers(requester) {
		return
	}
	l.Refuse("R15", path, "the step has no successful_state for %s, so this value is never used: add one, or remove the value", requesterText(requester))
}
