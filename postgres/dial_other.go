//go:build !linux

package postgres

import (
	"net"
	"time"
)

// setUserTimeout does nothing: Linux alone has TCP_USER_TIMEOUT. Keepalive and the
// call timeout are on every system.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
