package postgres

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// TestASocketNoticesThatItsOtherEndIsGone verifies that a socket detects that its other end is
// gone, idle or not, and that closing an unresponsive one is quick.
func TestASocketNoticesThatItsOtherEndIsGone(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := dialer((&net.Dialer{KeepAlive: -1}).DialContext)(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(socket).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]int{}
	err = raw.Control(func(fd uintptr) {
		for _, option := range []int{syscall.TCP_KEEPIDLE, syscall.TCP_KEEPINTVL, syscall.TCP_KEEPCNT, tcpUserTimeout} {
			got[option], _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option)
		}
		got[-1], _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
	})
	if err != nil || got[-1] != 1 || got[syscall.TCP_KEEPIDLE] != 5 || got[syscall.TCP_KEEPINTVL] != 2 || got[syscall.TCP_KEEPCNT] != 3 || got[tcpUserTimeout] != 10_000 {
		t.Errorf("got socket options %v: %v", got, err)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := conn.Read(make([]byte, 1)); ended <- err }()
	select {
	case err := <-ended:
		if !err.(net.Error).Timeout() {
			t.Errorf("read ended with %v, want a timeout", err)
		}
	case <-time.After(time.Minute):
		t.Error("the read did not end within a minute")
	}
}
