package testkit

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Fate is what becomes of a piece of data at a [Proxy], and of its connection.
type Fate int

// The fates.
const (
	Pass           Fate = iota // it goes through
	Cut                        // it is lost, and the connection is closed
	CutHalf                    // its first half goes through, and the connection is closed
	LoseAnswer                 // it goes through; the connection is closed in place of the answer
	Hang                       // it is lost, and so is all that either side sends from then on; neither learns of the other's end
	DeliverAndHang             // as Hang, but it goes through
)

// Proxy stands before a server and breaks connections as it is told. It ends with the test.
type Proxy struct {
	sent, answered func(piece []byte) Fate
	listener       net.Listener
	server         atomic.Value // string: where the server listens
	wg             sync.WaitGroup

	mu     sync.Mutex
	pairs  []*pair
	closed bool
}

// pair is a connection through the proxy.
type pair struct {
	client, server net.Conn
	hung           atomic.Bool
	deaf           atomic.Bool   // the next answer is lost
	answered       chan struct{} // closed when no more answers are carried
}

// NewProxy starts a proxy before the server that a URL names, and returns the URL through it.
// sent and answered decide on each piece that a client or the server sends; nil lets all pass.
func NewProxy(t testing.TB, base string, sent, answered func(piece []byte) Fate) (p *Proxy, through string) {
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

// SetServer says where the server listens from now on.
func (p *Proxy) SetServer(address string) { p.server.Store(address) }

// Server is where the server listens.
func (p *Proxy) Server() string { return p.server.Load().(string) }

// HangAll gives all open connections the fate [Hang].
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
		c.carry(client, server, func(piece []byte) Fate {
			if c.deaf.Load() {
				return Cut
			}
			return decide(p.answered, piece)
		})
	})
	c.carry(server, client, func(piece []byte) Fate { return decide(p.sent, piece) })
}

// add enters a connection, unless the proxy has been closed.
func (p *Proxy) add(c *pair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pairs = append(p.pairs, c)
	return !p.closed
}

func decide(by func([]byte) Fate, piece []byte) Fate {
	if by == nil {
		return Pass
	}
	return by(piece)
}

// carry copies from one side to the other until either is gone, or the connection is broken.
func (c *pair) carry(to, from net.Conn, fate func(piece []byte) Fate) {
	defer c.end()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if !c.hung.Load() && !c.meets(fate(buffer[:n]), to, buffer[:n]) {
			return
		}
	}
}

// meets does with a piece what its fate is, and says whether the connection goes on.
func (c *pair) meets(fate Fate, to net.Conn, piece []byte) bool {
	switch fate {
	case Cut:
		return false
	case CutHalf:
		_, _ = to.Write(piece[:len(piece)/2])
		return false
	case LoseAnswer:
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

// end closes the connection, unless neither side is to know.
func (c *pair) end() {
	if !c.hung.Load() {
		c.client.Close()
		c.server.Close()
	}
}
