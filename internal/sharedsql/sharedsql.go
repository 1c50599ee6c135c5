// Package sharedsql contains the SQL of reads that are the same in both dialects. The files are
// written for PostgreSQL (docs/sql.md), with tokens where SQLite differs: {schema}., {text},
// {no_time}, {pg}, {size}.
package sharedsql

import (
	"embed"
	"strings"

	"github.com/holdfast-go/holdfast/internal/store"
)

//go:embed sql/*/*.sql
var files embed.FS

// Add adds the files to those of an adapter, with its values for the tokens.
func Add(all store.SQLFiles, tokens *strings.Replacer) error {
	shared := make(store.SQLFiles)
	if err := shared.Add(files, "sql"); err != nil {
		return err
	}
	for name, text := range shared {
		if err := all.Put(name, tokens.Replace(text)); err != nil {
			return err
		}
	}
	return nil
}
