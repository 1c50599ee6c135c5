package keys_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/keys"
)

// TestManyCallersDoNotResetALimit verifies that a caller that has used up its rate is still limited after requests of more callers than
// there are limiters.
func TestManyCallersDoNotResetALimit(t *testing.T) {
	l := keys.Limits{Rate: 1}
	for range 60 {
		l.Take("busy", 0)
	}
	for n := range keys.MaxLimiters + 10 {
		if wait := l.Take(fmt.Sprint(n), keys.MaxRate); wait > 0 {
			t.Fatalf("caller %d must wait for %s", n, wait)
		}
	}
	if l.Take("busy", 0) <= 0 {
		t.Error("the limit of the busy caller was reset")
	}
}
