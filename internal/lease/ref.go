package lease

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// ID names what is held to somebody elsewhere, by what it consists of.
func ID(prefix string, parts ...string) string {
	text, _ := json.Marshal(parts) // of strings, it does not fail
	return prefix + base64.RawURLEncoding.EncodeToString(text)
}

// Parts takes an [ID] of so many parts apart. What [ID] would not have made is none.
func Parts(prefix, id string, n int) ([]string, bool) {
	rest, ours := strings.CutPrefix(id, prefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	var parts []string
	if !ours || err != nil || json.Unmarshal(raw, &parts) != nil || len(parts) != n || ID(prefix, parts...) != id || slices.ContainsFunc(parts, hasNUL) {
		return nil, false
	}
	return parts, true
}

// hasNUL says whether a name has the one character that no text of the database has.
func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }
