// Package tlsfiles configures TLS from PEM files. A server follows its files: each new connection uses the certificate that
// they have then.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"sync"

	"github.com/holdfast-go/holdfast/fault"
)

// Files are the files of a server or of a client.
type Files struct {
	// Cert and Key are the certificate, followed by its intermediate ones, and its private key.
	Cert, Key string
	// CA has the certificates of those that may sign the certificate of the other side. Empty means the system's for a
	// client; for a server it means that clients need no certificate.
	CA string
}

// Server returns the configuration of a server, which follows its files: a connection that begins after a change uses the new
// files. While they cannot be read, for example because only the certificate has been replaced yet, the last ones are used, and
// log says so.
func Server(f Files, log *slog.Logger) (*tls.Config, error) {
	if f.Cert == "" || f.Key == "" {
		return nil, fault.New(fault.Validation, "TLS needs a certificate and its private key: set --tls-cert and --tls-key")
	}
	s := &server{files: f, log: log}
	if _, err := s.follow(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.follow() },
	}, nil
}

var protocols = []string{"h2", "http/1.1"}

// server is a server's certificate. The configuration is replaced as a whole: a session that began under another one is not
// resumed, so its client is verified again.
type server struct {
	files Files
	log   *slog.Logger

	mu     sync.Mutex
	texts  [3]string // of the files when they were last read
	config *tls.Config
}

// follow returns the configuration of the files. It reads them for each connection, which costs much less than the connection:
// their times and sizes may stay the same when they are replaced.
func (s *server) follow() (*tls.Config, error) {
	var now [3]string
	for i, name := range [3]string{s.files.Cert, s.files.Key, s.files.CA} {
		text, _ := os.ReadFile(name) // an error is reported below
		now[i] = string(text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config != nil && now == s.texts {
		return s.config, nil
	}
	s.texts = now
	c, err := read(s.files)
	switch {
	case err == nil:
		c.NextProtos = protocols
		if c.ClientCAs = c.RootCAs; c.ClientCAs != nil {
			c.ClientAuth, c.RootCAs = tls.RequireAndVerifyClientCert, nil
		}
		leaf := c.Certificates[0].Leaf
		s.log.Info("certificate loaded", "file", s.files.Cert, "names", leaf.DNSNames, "until", leaf.NotAfter)
		s.config = c
	case s.config == nil:
		return nil, err
	default:
		s.log.Warn("the changed certificate cannot be loaded: the last one is still used", "file", s.files.Cert, "error", err)
	}
	return s.config, nil
}

// Client returns the configuration of a client, or nil if no file is named.
func Client(f Files) (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil
	}
	return read(f)
}

// read reads files into a configuration, with the certificates of the other side as roots.
func read(f Files) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Cert != "" || f.Key != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fault.New(fault.Validation, "the certificate %q with the private key %q cannot be used: both must be PEM, and belong together", f.Cert, f.Key).Wrap(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fault.New(fault.Validation, "the CA certificates cannot be read").Wrap(err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fault.New(fault.Validation, "the file %q has no certificate in PEM", f.CA)
		}
	}
	return c, nil
}
