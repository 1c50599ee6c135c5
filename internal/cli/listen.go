package cli

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/holdfast-go/holdfast/fault"
)

// errNoAddress says that the address to listen on cannot be had. That is no server
// that does not answer.
var errNoAddress = errors.New("the address cannot be had")

// checkListen refuses an address that is none, and one that others than this
// machine can reach, for the reason given.
func checkListen(address, reason string) error {
	loopback, err := isLoopback(address)
	if err != nil || loopback {
		return err
	}
	return misuse("--listen %s can be reached from other machines, or might be: %s", address, reason)
}

// isLoopback says whether only this machine can reach an address. It refuses one that
// is none.
func isLoopback(address string) (bool, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false, misuse("--listen wants an address with a port, such as 127.0.0.1:7070, and is %q", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, misuse("--listen wants a port from 0 to 65535, and has %q", port)
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback()), nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "tcp", address)
	if err == nil {
		return ln, nil
	}
	err = errors.Join(errNoAddress, err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fault.New(fault.Unavailable, "another program listens on %s: stop it, or choose another address with --listen", address).Wrap(err)
	case errors.Is(err, syscall.EACCES):
		return nil, fault.New(fault.Unavailable, "this user may not listen on %s: choose a port from 1024 on with --listen", address).Wrap(err)
	default:
		return nil, fault.New(fault.Unavailable, "cannot listen on %s", address).Wrap(err)
	}
}
