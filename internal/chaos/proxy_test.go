package chaos

import (
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testkit"
)

// proxy stands before a server, under an address that outlives it, and loses what it is told to.
type proxy struct {
	*testkit.Proxy
	url      string
	answers  atomic.Int64 // how many answers are still to be lost
	requests atomic.Int64 // how many requests are still to be cut in the middle
}

func newProxy(t *testing.T) *proxy {
	p := &proxy{}
	p.Proxy, p.url = testkit.NewProxy(t, "http://", lose(&p.requests, testkit.CutHalf), lose(&p.answers, testkit.Cut))
	return p
}

// lose gives so many pieces a fate.
func lose(left *atomic.Int64, fate testkit.Fate) func([]byte) testkit.Fate {
	return func([]byte) testkit.Fate {
		if left.Load() > 0 && left.Add(-1) >= 0 {
			return fate
		}
		return testkit.Pass
	}
}
