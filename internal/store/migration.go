package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
)

// Migration is one numbered change of the schema. A released migration is never edited: its checksum is stored
// with it, and a node refuses a database that was created from a different text. The name and checksum of the
// first migration distinguish a database from one built by other migrations with the same numbers.
type Migration struct {
	Number int
	Name   string
	// MinReader is the oldest schema number whose programs still work after this migration. A purely additive one
	// leaves it unchanged, so that old and new nodes run side by side during a rolling deploy.
	MinReader int
	SQL       string
	Sum       string
}

// Heading returns the comment that begins the migration in a script. previous is the MinReader of the migration before it.
func (m Migration) Heading(previous int) string {
	text := fmt.Sprintf("-- migration %d: %s\n", m.Number, m.Name)
	if m.MinReader > previous {
		text += fmt.Sprintf("-- Stop all nodes whose schema number is less than %d first: they do not work with this schema.\n", m.MinReader)
	}
	return text
}

// Applied is a migration as recorded in a database.
type Applied struct {
	Number    int
	Name      string
	MinReader int
	Sum       string
}

var (
	migrationFile = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.sql$`)
	minReader     = regexp.MustCompile(`(?m)^-- min_reader: (\d+)$`)
)

// LoadMigrations reads the migrations of an adapter from the folder migrations: 0001_name.sql, 0002_… without a
// gap, each with a line "-- min_reader: n", which never decreases.
func LoadMigrations(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []Migration
	for i, name := range names { // Glob sorts
		m, err := loadMigration(files, name)
		if err != nil {
			return nil, err
		}
		if m.Number != i+1 || m.MinReader < 1 || m.MinReader > m.Number || i > 0 && m.MinReader < all[i-1].MinReader {
			return nil, fmt.Errorf("store: %s: number or min_reader is out of order", name)
		}
		all = append(all, m)
	}
	return all, nil
}

func loadMigration(files fs.FS, name string) (Migration, error) {
	part := migrationFile.FindStringSubmatch(path.Base(name))
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return Migration{}, err
	}
	reader := minReader.FindSubmatch(text)
	if part == nil || reader == nil {
		return Migration{}, fmt.Errorf("store: %s: name the file NNNN_words.sql and add a line \"-- min_reader: n\"", name)
	}
	number, _ := strconv.Atoi(part[1])
	oldest, _ := strconv.Atoi(string(reader[1]))
	sum := sha256.Sum256(text)
	return Migration{
		Number: number, Name: part[2], MinReader: oldest,
		SQL: string(text), Sum: hex.EncodeToString(sum[:]),
	}, nil
}

// Pending compares the migrations of a database with those of this program and returns the ones still to be
// applied. It refuses a database that this program must not touch.
func Pending(known []Migration, applied []Applied) ([]Migration, error) {
	for i, a := range applied {
		if a.Number != i+1 {
			return nil, fault.New(fault.DatabaseDamaged,
				"migration %d is missing from the database although a later one is recorded: restore the database from a backup", i+1)
		}
		if a.Number <= len(known) {
			if a.Sum != known[i].Sum {
				return nil, otherText(known[i], a)
			}
		} else if a.MinReader > len(known) {
			return nil, fault.New(fault.DatabaseTooNew,
				"the database has schema %d, which requires a program with schema %d or later, but this program has schema %d: use a newer version of Holdfast",
				len(applied), a.MinReader, len(known))
		}
	}
	if len(applied) >= len(known) {
		return nil, nil
	}
	return known[len(applied):], nil
}

// otherText returns the refusal of a migration that was applied from a different text. Before the first release
// there were many small migrations; the first of them had a different name than the baseline that replaced
// them.
func otherText(known Migration, a Applied) error {
	if a.Number == 1 && a.Name != known.Name {
		return fault.New(fault.DatabaseForeign,
			"the database was created before the first release, with other migrations, and cannot be migrated: use a new database or schema, or drop this one. Nothing was changed")
	}
	return fault.New(fault.DatabaseForeign,
		"migration %d was applied by a different build of Holdfast: use that build, or restore the database from a backup", a.Number)
}

// Behind returns the refusal of a database with pending migrations that this program is configured not to
// apply, or not privileged to apply.
func Behind(have, want int) *fault.Error {
	return fault.New(fault.DatabaseTooOld,
		"the database has schema %d, but this program requires schema %d: run \"holdfast migrate\" with a role that may change the schema", have, want)
}
