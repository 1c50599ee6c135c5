package cli

import (
	"strings"

	"github.com/holdfast-go/holdfast/httpapi"
)

// tableForm describes the syntax of a table in errors.
const tableForm = "write NAME:table=shop.orders,id=nr,status=state,version=rev,workspace-column=tenant,write=total note, or some of these options"

// entityTables parses tables. Each text has one table, or several separated by semicolons, because an environment
// variable cannot be repeated.
func entityTables(texts []string) (map[string]httpapi.EntityTable, error) {
	all := make(map[string]httpapi.EntityTable)
	for text := range strings.SplitSeq(strings.Join(texts, ";"), ";") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		name, rest, _ := strings.Cut(text, ":")
		if name = strings.TrimSpace(name); name == "" {
			return nil, misuse("--entity-table: %q has no name: %s", text, tableForm)
		}
		if _, taken := all[name]; taken {
			return nil, misuse("--entity-table: duplicate table %q", name)
		}
		t, err := entityTable(name, rest)
		if err != nil {
			return nil, err
		}
		all[name] = t
	}
	return all, nil
}

// entityTable parses the options of one table.
func entityTable(name, text string) (t httpapi.EntityTable, err error) {
	options := map[string]*string{"table": &t.Table, "id": &t.ID, "status": &t.Status, "version": &t.Version, "workspace-column": &t.WorkspaceColumn, "workspace": &t.Workspace, "write": new(string)}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		option, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		into := options[option]
		switch {
		case !ok || into == nil:
			return t, misuse("--entity-table: %q is not an option for table %q: %s", option, name, tableForm)
		case *into != "":
			return t, misuse("--entity-table: duplicate option %s for table %q", option, name)
		}
		if *into = strings.TrimSpace(value); *into == "" {
			return t, misuse("--entity-table: option %s for table %q is empty: %s", option, name, tableForm)
		}
	}
	t.Write = strings.Fields(*options["write"])
	if t.Workspace != "" && t.WorkspaceColumn != "" {
		return t, misuse("--entity-table: table %q has both a workspace and a workspace-column: keep one of them", name)
	}
	return t, nil
}
