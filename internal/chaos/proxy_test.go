package chaos

import (
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testkit"
)

// proxy is a proxy for a server with a stable address, which can lose responses and requests.
type proxy struct {
	*testkit.Proxy
	url      string
	answers  atomic.Int64 // number of responses left to lose
	requests atomic.Int64 // number of requests left to truncate
}

func newProxy(t *testing.T) *proxy {
	p := &proxy{}
	p.Proxy, p.url = testkit.NewProxy(t, "http://", lose(&p.requests, testkit.CutHalf), lose(&p.answers, testkit.Cut))
	return p
}

// lose applies an action while left is positive, and counts left down.
func lose(left *atomic.Int64, action testkit.Action) func([]byte) testkit.Action {
	return func([]byte) testkit.Action {
		if left.Load() > 0 && left.Add(-1) >= 0 {
			return action
		}
		return testkit.Pass
	}
}
