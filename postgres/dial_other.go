//go:build !linux

package postgres

import (
	"net"
	"time"
)

// setUserTimeout does nothing: only Linux has TCP_USER_TIMEOUT. Keepalive and the call timeout
// exist on every system.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
