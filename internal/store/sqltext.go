package store

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Texts are the SQL files of an adapter by name, without the ".sql".
type Texts map[string]string

// LoadTexts reads every .sql file of a directory and replaces the tokens in it:
// "{schema}", "{now}".
func LoadTexts(files fs.FS, dir string, tokens *strings.Replacer) (Texts, error) {
	names, err := fs.Glob(files, path.Join(dir, "*.sql"))
	if err != nil {
		return nil, err
	}
	texts := make(Texts, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		texts[strings.TrimSuffix(path.Base(name), ".sql")] = tokens.Replace(string(text))
	}
	return texts, nil
}

// Missing returns an error that names every declared verb without SQL. An
// adapter asks it when it opens, so that a verb that cannot run is found at
// the start and not in the night.
func (t Texts) Missing(decls []Decl) error {
	var missing []string
	for _, d := range decls {
		if t[d.Name] == "" {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("store: no SQL for the verbs %s", strings.Join(missing, ", "))
	}
	return nil
}

// Orphans returns the names of the texts that no verb is declared for.
func (t Texts) Orphans(decls []Decl) []string {
	declared := make(map[string]bool, len(decls))
	for _, d := range decls {
		declared[d.Name] = true
	}
	var orphans []string
	for name := range t {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".unmarked"), ".fast"), ".group")
		if !declared[base] {
			orphans = append(orphans, name)
		}
	}
	return orphans
}
