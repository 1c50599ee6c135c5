// Package sameorigin keeps headers with secrets from the hosts that a call is redirected to.
package sameorigin

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// Client returns a client that sends the headers only to the origin of a request: not where that redirects to, if the scheme,
// the host or the port is another.
func Client(c *http.Client, headers []string) *http.Client {
	if len(headers) == 0 {
		return c
	}
	same := *c
	same.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if origin(r.URL) != origin(via[0].URL) {
			for _, name := range headers {
				r.Header.Del(name)
			}
		}
		if c.CheckRedirect != nil {
			return c.CheckRedirect(r, via)
		}
		if len(via) >= 10 { // as net/http does
			return fault.New(fault.Forbidden, "the call was redirected more than 10 times: use the final URL")
		}
		return nil
	}
	return &same
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
