package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// credentials are the keys that requests are signed with. Requests without keys are not signed.
type credentials struct {
	access, secret, token string
}

const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeFormat = "20060102T150405Z"
	dateFormat = "20060102"
)

// sign adds a signature of version 4 to a request whose body has the checksum sum. It signs the host and all headers
// that are set, so it must be called last. The path and the query of the URL must be as [escape] and [encode] write
// them, because the service computes the signature from what it receives.
func sign(r *http.Request, c credentials, region, sum string, now time.Time) {
	if c.access == "" {
		return
	}
	at := now.UTC().Format(timeFormat)
	r.Header.Set("X-Amz-Date", at)
	r.Header.Set("X-Amz-Content-Sha256", sum)
	if c.token != "" {
		r.Header.Set("X-Amz-Security-Token", c.token)
	}
	headers, signed := signedHeaders(r)
	request := strings.Join([]string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers, signed, sum}, "\n")
	scope := []string{now.UTC().Format(dateFormat), region, "s3", "aws4_request"}
	text := strings.Join([]string{algorithm, at, strings.Join(scope, "/"), checksum([]byte(request))}, "\n")
	key := []byte("AWS4" + c.secret)
	for _, part := range scope {
		key = mac(key, part)
	}
	r.Header.Set("Authorization", algorithm+" Credential="+c.access+"/"+strings.Join(scope, "/")+
		",SignedHeaders="+signed+",Signature="+hex.EncodeToString(mac(key, text)))
}

// signedHeaders returns the lines and the names of the headers that are signed.
func signedHeaders(r *http.Request) (lines, names string) {
	values := map[string]string{"host": r.URL.Host}
	for name, all := range r.Header {
		values[strings.ToLower(name)] = strings.Join(all, ",")
	}
	order := slices.Sorted(maps.Keys(values))
	for _, name := range order {
		lines += name + ":" + strings.TrimSpace(values[name]) + "\n"
	}
	return lines, strings.Join(order, ";")
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// checksum returns the SHA-256 of a body, in hex.
func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// escape escapes the name of an object for a path: every byte except letters, digits, -._~ and the slash.
func escape(key string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(key) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// encode encodes a query, sorted by name.
func encode(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }
