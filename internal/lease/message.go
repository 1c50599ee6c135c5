package lease

import "strings"

// maxMessage limits how many bytes of a failure's text are stored.
const maxMessage = 4 << 10

// Plain converts any text, such as the message of a failed handler, to one that both databases can store.
func Plain(message string) string {
	message = strings.ReplaceAll(strings.ToValidUTF8(message, "\uFFFD"), "\x00", "\uFFFD")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}
