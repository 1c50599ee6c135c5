package testkit

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Action is what a [Proxy] does with a piece of data and its connection.
type Action int

// Actions on a piece of data.
const (
	Pass           Action = iota // deliver it
	Cut                          // drop it and close the connection
	CutHalf                      // deliver its first half and close the connection
	LoseResponse                 // deliver it, and close the connection instead of delivering the response
	Hang                         // drop it and all later data of both sides, and do not propagate a close
	DeliverAndHang               // deliver it, then as Hang
)

// Proxy is a TCP proxy that breaks connections as instructed. It is closed when the test ends.
type Proxy struct {
	sent, answered func(piece []byte) Action
	listener       net.Listener
	server         atomic.Value // string: the address of the server
	wg             sync.WaitGroup

	mu     sync.Mutex
	pairs  []*pair
	closed bool
}

// pair is a connection through the proxy.
type pair struct {
	client, server net.Conn
	hung           atomic.Bool
	deaf           atomic.Bool   // the next response is dropped
	answered       chan struct{} // closed when no more responses are copied
}

// NewProxy starts a proxy for the server of a URL and returns the URL of the proxy. sent and
// answered choose the action on each piece of data from a client or from the server; nil passes
// all.
func NewProxy(t testing.TB, base string, sent, answered func(piece []byte) Action) (p *Proxy, through string) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	p = &Proxy{sent: sent, answered: answered}
	p.SetServer(u.Host)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	u.Host = p.listener.Addr().String()
	return p, u.String()
}

// SetServer sets the address of the server for new connections.
func (p *Proxy) SetServer(address string) { p.server.Store(address) }

// Server returns the address of the server.
func (p *Proxy) Server() string { return p.server.Load().(string) }

// HangAll applies [Hang] to all open connections.
func (p *Proxy) HangAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pairs {
		c.hung.Store(true)
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.pairs {
		c.client.Close()
		c.server.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	server, err := net.Dial("tcp", p.Server())
	if err != nil {
		client.Close()
		return
	}
	c := &pair{client: client, server: server, answered: make(chan struct{})}
	if !p.add(c) {
		c.end()
		return
	}
	p.wg.Go(func() {
		defer close(c.answered)
		c.carry(client, server, func(piece []byte) Action {
			if c.deaf.Load() {
				return Cut
			}
			return decide(p.answered, piece)
		})
	})
	c.carry(server, client, func(piece []byte) Action { return decide(p.sent, piece) })
}

// add registers a connection. It returns false if the proxy is closed.
func (p *Proxy) add(c *pair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pairs = append(p.pairs, c)
	return !p.closed
}

func decide(by func([]byte) Action, piece []byte) Action {
	if by == nil {
		return Pass
	}
	return by(piece)
}

// carry copies from one side to the other until one of them closes or the connection is broken.
func (c *pair) carry(to, from net.Conn, choose func(piece []byte) Action) {
	defer c.end()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if !c.hung.Load() && !c.apply(choose(buffer[:n]), to, buffer[:n]) {
			return
		}
	}
}

// apply applies the action on a piece and reports whether the connection stays open.
func (c *pair) apply(action Action, to net.Conn, piece []byte) bool {
	switch action {
	case Cut:
		return false
	case CutHalf:
		_, _ = to.Write(piece[:len(piece)/2])
		return false
	case LoseResponse:
		c.deaf.Store(true)
		_, _ = to.Write(piece)
		<-c.answered
		return false
	case Hang:
		c.hung.Store(true)
		return true
	case DeliverAndHang:
		c.hung.Store(true)
		_, _ = to.Write(piece)
		return true
	}
	_, err := to.Write(piece)
	return err == nil
}

// end closes both sides, unless the connection hangs.
func (c *pair) end() {
	if !c.hung.Load() {
		c.client.Close()
		c.server.Close()
	}
}
