package chaos

import (
	"net"
	"sync/atomic"
)

// proxy stands before a server, under an address that outlives it, and loses what it is told to.
type proxy struct {
	listener net.Listener
	target   atomic.Value // string: where the server listens
	answers  atomic.Int64 // how many answers are still to be lost
	requests atomic.Int64 // how many requests are still to be cut in the middle
}

func newProxy() (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l}
	p.target.Store("")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p, nil
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

func (p *proxy) serve(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", p.target.Load().(string))
	if err != nil {
		return
	}
	defer out.Close()
	go func() {
		defer in.Close()
		defer out.Close()
		carry(out, in, &p.requests, true)
	}()
	carry(in, out, &p.answers, false)
}

// carry copies until one side is gone, or until it is told to lose something: all of it, or
// the second half.
func carry(to, from net.Conn, lose *atomic.Int64, half bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if lose.Load() > 0 && lose.Add(-1) >= 0 {
			if half {
				_, _ = to.Write(buf[:n/2])
			}
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
