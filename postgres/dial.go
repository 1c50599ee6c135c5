package postgres

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// keepAlive breaks an idle connection whose other end is gone, after 11 seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// userTimeout is the time after which a connection breaks whose other end does not acknowledge bytes.
const userTimeout = 10 * time.Second

// dialer makes the sockets of another dialer detect that their other end is gone.
func dialer(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			if err := watch(tcp); err != nil {
				_ = conn.Close()
				return nil, err
			}
		}
		return socket{conn}, nil
	}
}

func watch(tcp *net.TCPConn) error {
	if err := tcp.SetKeepAliveConfig(keepAlive); err != nil {
		return err
	}
	return setUserTimeout(tcp, userTimeout)
}

// socket limits how long closing takes. pgx drains a broken connection for up to 15 seconds, and
// the connection occupies its place in the pool until then. pgx sets no other deadline in the
// future.
type socket struct{ net.Conn }

const draining = time.Second

// SetDeadline sets the deadline, at most a second ahead.
func (s socket) SetDeadline(t time.Time) error {
	if latest := clock.OfMachine().Add(draining); t.After(latest) {
		t = latest
	}
	return s.Conn.SetDeadline(t)
}
