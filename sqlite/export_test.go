package sqlite

import (
	"io/fs"
	"time"
)

// Migrations replaces the migrations of a program.
func Migrations(files fs.FS) Option { return Option{func(d *Database) { d.migrations = files }} }

// Wrong sets the clock of a database wrong.
func Wrong(by func() time.Duration) Option { return Option{func(d *Database) { d.wrong = by }} }
