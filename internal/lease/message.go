package lease

import "strings"

// longestMessage is how much of a failure's text is kept.
const longestMessage = 4 << 10

// Plain makes any text one that both databases keep: what a body fails with may
// hold anything.
func Plain(message string) string {
	message = strings.ReplaceAll(strings.ToValidUTF8(message, "\uFFFD"), "\x00", "\uFFFD")
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "") + "…"
	}
	return message
}
