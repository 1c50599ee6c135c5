package pgtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// withDatabase returns the same connection string for another database. The rest stays as written:
// pgx and libpq accept URLs that net/url refuses, such as those with many hosts.
func withDatabase(conn, name string) (string, error) {
	changed := conn + " dbname=" + name // the last of several keywords counts
	if isURL(conn) {
		changed = replacePath(conn, name)
	}
	config, err := pgx.ParseConfig(changed)
	if err != nil {
		return "", fmt.Errorf("name the database %s: %w", name, err)
	}
	if config.Database != name {
		return "", fmt.Errorf("name the database %s: the connection string fixes it to %s", name, config.Database)
	}
	return changed, nil
}

func isURL(conn string) bool {
	return strings.HasPrefix(conn, "postgres://") || strings.HasPrefix(conn, "postgresql://")
}

func replacePath(url, name string) string {
	front, query, _ := strings.Cut(url, "?")
	scheme, rest, _ := strings.Cut(front, "://")
	authority, _, _ := strings.Cut(rest, "/")
	changed := scheme + "://" + authority + "/" + name
	if kept := withoutDatabase(query); kept != "" {
		changed += "?" + kept
	}
	return changed
}

// withoutDatabase removes the parameters that would override the path.
func withoutDatabase(query string) string {
	pairs := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		key, _, _ := strings.Cut(pair, "=")
		return key == "dbname" || key == "database"
	})
	return strings.Join(pairs, "&")
}
