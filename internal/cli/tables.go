package cli

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/httpapi"
)

// tableForm describes the syntax of a table in errors.
const tableForm = "write NAME:table=shop.orders,id=nr,status=state,version=rev,workspace-column=tenant,write=total note, or some of these options"

// entityTables parses tables.
func entityTables(texts []string) (map[string]httpapi.EntityTable, error) {
	all := make(map[string]httpapi.EntityTable)
	err := namedOptions{"--entity-table", "table", tableForm}.parse(texts, func(name string, o options) error {
		t := httpapi.EntityTable{Table: o["table"], ID: o["id"], Status: o["status"], Version: o["version"], WorkspaceColumn: o["workspace-column"],
			Workspace: o["workspace"], Write: strings.Fields(o["write"])}
		if t.Workspace != "" && t.WorkspaceColumn != "" {
			return misuse("--entity-table: table %q has both a workspace and a workspace-column: keep one of them", name)
		}
		all[name] = t
		return nil
	}, "table", "id", "status", "version", "workspace-column", "workspace", "write")
	return all, err
}

// namedOptions is a repeatable flag whose values are objects with options: NAME:option=value,… .
type namedOptions struct{ flag, object, form string }

// options are the options of an object.
type options map[string]string

// parse parses the objects. Each text has one object, or several separated by semicolons, because an environment variable cannot be
// repeated.
func (f namedOptions) parse(texts []string, add func(name string, o options) error, known ...string) error {
	seen := make(map[string]bool)
	for text := range strings.SplitSeq(strings.Join(texts, ";"), ";") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		name, rest, _ := strings.Cut(text, ":")
		if name = strings.TrimSpace(name); name == "" {
			return misuse("%s: %q has no name: %s", f.flag, text, f.form)
		}
		if seen[name] {
			return misuse("%s: duplicate %s %q", f.flag, f.object, name)
		}
		seen[name] = true
		o, err := f.options(name, rest, known)
		if err != nil {
			return err
		}
		if err := add(name, o); err != nil {
			return err
		}
	}
	return nil
}

// options parses the options of one object.
func (f namedOptions) options(name, text string, known []string) (options, error) {
	all := make(options)
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		option, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !ok || !slices.Contains(known, option):
			return nil, misuse("%s: %q is not an option for %s %q: %s", f.flag, option, f.object, name, f.form)
		case all[option] != "":
			return nil, misuse("%s: duplicate option %s for %s %q", f.flag, option, f.object, name)
		}
		if all[option] = strings.TrimSpace(value); all[option] == "" {
			return nil, misuse("%s: option %s for %s %q is empty: %s", f.flag, option, f.object, name, f.form)
		}
	}
	return all, nil
}
