//go:build unix

package testkit

import "syscall"

// Stop stops the child (SIGSTOP) and returns when it has stopped.
func (c *Child) Stop() {
	c.t.Helper()
	c.Signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || !status.Stopped():
			c.t.Fatalf("the child did not stop: status %v, error %v", status, err)
		default:
			return
		}
	}
}
