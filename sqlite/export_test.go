package sqlite

import "time"

// Wrong sets the clock of a database wrong.
func Wrong(by func() time.Duration) Option { return func(d *Database) { d.wrong = by } }
