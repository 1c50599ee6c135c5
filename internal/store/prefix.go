package store

import "unicode/utf8"

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
