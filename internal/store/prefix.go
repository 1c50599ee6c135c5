package store

import (
	"strings"
	"unicode/utf8"
)

// AfterPrefix returns the first text that sorts after every text with a prefix, "" if there is none. The order of bytes is
// that of code points.
func AfterPrefix(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		if last++; last == 0xD800 { // surrogates are no characters
			last = 0xE000
		}
		if last <= utf8.MaxRune {
			return prefix + string(last)
		}
	}
	return ""
}

// Last sorts after every name and id, which are shorter.
var Last = strings.Repeat(string(utf8.MaxRune), 256)

// PrefixEnd is [AfterPrefix], or [Last] if there is no such text. As a bound of a range it is always used by an index: the planner
// cannot use a bound that may be missing, and reads to the end of the list.
func PrefixEnd(prefix string) string {
	if end := AfterPrefix(prefix); end != "" {
		return end
	}
	return Last
}
