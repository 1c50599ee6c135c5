package cli

import (
	"crypto/x509"
	"os"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustRoots makes the process trust the root certificates in this program if the machine has none, as in a container image that
// contains only this program. With SSL_CERT_FILE or SSL_CERT_DIR it changes nothing: a user who sets one means those
// certificates and no others. It takes a few milliseconds, so only commands that connect to others call it.
var trustRoots = sync.OnceFunc(func() {
	if os.Getenv("SSL_CERT_FILE") != "" || os.Getenv("SSL_CERT_DIR") != "" {
		return
	}
	roots := x509.NewCertPool()
	for c := range bundle.Roots() {
		cert, err := x509.ParseCertificate(c.Certificate)
		if err != nil {
			continue // the other roots can still be used
		}
		if c.Constraint == nil {
			roots.AddCert(cert)
		} else {
			roots.AddCertWithConstraint(cert, c.Constraint)
		}
	}
	x509.SetFallbackRoots(roots)
})
