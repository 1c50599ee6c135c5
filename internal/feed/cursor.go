package feed

import (
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
)

// cursorMark begins every cursor, so that other text is not mistaken for one.
const cursorMark = "p"

// Cursor returns the text of a position; "" is the beginning of the feed.
func Cursor(position int64) string {
	if position == 0 {
		return ""
	}
	return cursorMark + strconv.FormatInt(position, 36)
}

// ParseCursor returns the position of a cursor. Each position has exactly one valid cursor.
func ParseCursor(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	if len(cursor) > len(cursorMark) {
		position, err := strconv.ParseInt(cursor[len(cursorMark):], 36, 64)
		if err == nil && position > 0 && Cursor(position) == cursor {
			return position, nil
		}
	}
	return 0, fault.New(fault.Validation, "%q is not a cursor of the feed: pass back a cursor that a read returned", cursor).With("field", "cursor")
}
