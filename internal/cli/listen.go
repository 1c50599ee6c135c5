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

// errNoAddress marks a failure to listen. Such a failure exits with 1, unlike an unreachable
// server, which exits with 3.
var errNoAddress = errors.New("cannot listen on the address")

// checkListen refuses an invalid address, and an address that other machines can reach. The
// error gives the reason.
func checkListen(address, reason string) error {
	loopback, err := isLoopback(address)
	if err != nil || loopback {
		return err
	}
	return misuse("--listen %s may be reachable from other machines: %s", address, reason)
}

// isLoopback reports whether only this machine can reach an address. It returns an error if
// the address is invalid.
func isLoopback(address string) (bool, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false, misuse("--listen must be an address with a port, such as 127.0.0.1:7070, got %q", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, misuse("--listen must have a port between 0 and 65535, got %q", port)
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
		return nil, fault.New(fault.Unavailable, "address %s is in use by another program: stop that program, or choose another address with --listen", address).Wrap(err)
	case errors.Is(err, syscall.EACCES):
		return nil, fault.New(fault.Unavailable, "no permission to listen on %s: choose a port above 1023 with --listen", address).Wrap(err)
	default:
		return nil, fault.New(fault.Unavailable, "cannot listen on %s", address).Wrap(err)
	}
}
