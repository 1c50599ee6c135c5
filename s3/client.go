package s3

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// client sends signed requests about one bucket, and repeats those that failed for a temporary reason. It is safe for
// concurrent use.
type client struct {
	endpoint  url.URL // scheme and host
	bucket    string
	hostStyle bool // the bucket is in the host name, not in the path
	keys      credentials
	http      *http.Client

	mu     sync.Mutex
	region string // "" until the service was asked for it
	asked  bool   // the region is what the service said, so it may say another
}

// request is a request about an object or, without a key, about the bucket.
type request struct {
	method, key string
	query       url.Values
	header      http.Header
	body        []byte
}

const (
	// maxAttempts is the number of attempts of a request. The caller retries later.
	maxAttempts = 3
	// maxResponse is the size of the largest response that is read into memory: a list of 1000 names of 1024 bytes, each
	// byte escaped twice, and their other attributes.
	maxResponse = 16 << 20
	// dialTimeout is how long it may take to connect, and then to agree on keys.
	dialTimeout = 10 * time.Second
	// headerTimeout is how long a service may take to answer.
	headerTimeout = time.Minute
	// idleTimeout is how long a connection is kept for the next request.
	idleTimeout = time.Minute
	// idleConnections is the number of connections that are kept.
	idleConnections = 16
)

// retryUnit is the longest pause before the second attempt. It doubles.
var retryUnit = 200 * time.Millisecond

func newClient(endpoint *url.URL, c Config) *client {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   idleConnections,
		DisableCompression:    true, // the bytes of an object are not to be changed
	}
	made := &client{
		endpoint: url.URL{Scheme: endpoint.Scheme, Host: host(endpoint)}, bucket: c.Bucket, keys: c.credentials(), region: c.Region,
		// A signature is for one host, so a redirect cannot be followed: it is an error of the service.
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	if made.region == "" {
		made.region = regionOf(endpoint.Hostname())
	}
	made.hostStyle = !c.PathStyle && supportsHostStyle(endpoint, c.Bucket)
	return made
}

// host returns the host of a URL without the default port, which some proxies remove from the signed header.
func host(u *url.URL) string {
	if u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		return strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u.Host
}

// amazon matches the host names of Amazon S3 that contain the region: dual-stack, FIPS and private ones too.
var amazon = regexp.MustCompile(`(?:^|\.)s3(?:-fips)?[.-](?:dualstack\.)?([a-z]{2}(?:-[a-z]+)+-\d+)(?:\.vpce)?\.amazonaws\.com(?:\.cn)?$`)

// regionOf returns the region in a host name, or "".
func regionOf(host string) string {
	if m := amazon.FindStringSubmatch(host); m != nil {
		return m[1]
	}
	return ""
}

// regionName matches a name that may become a part of a host name.
var regionName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// supportsHostStyle reports whether the service is known to accept the bucket in the host name. A certificate for
// *.host does not match a bucket with a dot.
func supportsHostStyle(endpoint *url.URL, bucket string) bool {
	if endpoint.Scheme == "https" && strings.Contains(bucket, ".") {
		return false
	}
	h := endpoint.Hostname()
	return h == anyRegion || h == "storage.googleapis.com" || strings.HasSuffix(h, ".aliyuncs.com") || regionOf(h) != ""
}

// send sends a request and returns the response, whose body the caller closes.
func (c *client) send(ctx context.Context, r request) (*http.Response, error) {
	var response *http.Response
	err := c.repeat(ctx, r, func(got *http.Response) error {
		response = got
		return nil
	})
	return response, err
}

// call sends a request and decodes the response into out, or drops it if out is nil. A response that breaks off is a
// failed attempt.
func (c *client) call(ctx context.Context, r request, out any) error {
	return c.repeat(ctx, r, decode(r.key, out))
}

// decode returns a function that decodes a response about an object into out.
func decode(key string, out any) func(*http.Response) error {
	return func(got *http.Response) error {
		defer got.Body.Close()
		b, err := io.ReadAll(io.LimitReader(got.Body, maxResponse))
		if err != nil {
			return err
		}
		// A service may find out that it fails after it has sent the status 200.
		if refused := refusal(got, b, key); refused.Code != "" {
			return refused
		}
		if out == nil {
			return nil
		}
		if err := xml.Unmarshal(b, out); err != nil {
			return fmt.Errorf("the service sent an invalid response: %w", err)
		}
		return nil
	}
}

// repeat sends a request until the service accepts it and read succeeds, an error is not temporary, or the attempts
// are used up.
func (c *client) repeat(ctx context.Context, r request, read func(*http.Response) error) error {
	for n := 1; ; n++ {
		region, err := c.regionFor(ctx)
		if err == nil {
			err = c.attempt(ctx, r, region, read)
		}
		if err == nil || n == maxAttempts || !worthRepeating(err) && !c.correct(region, err) {
			return err
		}
		if clock.Wait(ctx, clock.Jitter(retryUnit<<(n-1))) != nil {
			return err
		}
	}
}

// attempt sends a request once.
func (c *client) attempt(ctx context.Context, r request, region string, read func(*http.Response) error) error {
	u := c.url(r, region)
	q, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	if r.header != nil {
		q.Header = r.header.Clone()
	}
	sign(q, c.keys, region, checksum(r.body), clock.OfMachine())
	got, err := c.http.Do(q)
	if err != nil {
		return err
	}
	// Other statuses, such as 202 of a proxy that queues requests, do not say that the service has done what was asked.
	if got.StatusCode == http.StatusOK || got.StatusCode == http.StatusNoContent && r.method == http.MethodDelete {
		return read(got)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(io.LimitReader(got.Body, maxResponse))
	if err != nil {
		return err
	}
	return refusal(got, b, r.key)
}

// anyRegion is the host of Amazon S3 that is for all regions, but does not know the newer ones.
const anyRegion = "s3.amazonaws.com"

// url returns the URL of a request.
func (c *client) url(r request, region string) *url.URL {
	u := c.endpoint
	if u.Host == anyRegion && region != "" && region != defaultRegion {
		u.Host = "s3." + region + ".amazonaws.com"
		if strings.HasPrefix(region, "cn-") {
			u.Host += ".cn"
		}
	}
	name := "/" + r.key
	if c.hostStyle {
		u.Host = c.bucket + "." + u.Host
	} else {
		name = "/" + c.bucket + name
	}
	u.Path, u.RawPath, u.RawQuery = name, escape(name), encode(r.query)
	return &u
}

// defaultRegion is the region of buckets that have none.
const defaultRegion = "us-east-1"

// regionFor returns the region that requests are signed for, and asks the service for it if it is not known.
func (c *client) regionFor(ctx context.Context) (string, error) {
	c.mu.Lock()
	region := c.region
	c.mu.Unlock()
	if region != "" || c.keys.access == "" {
		return region, nil
	}
	region, err := c.askRegion(ctx)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.region, c.asked = region, true
	return region, nil
}

// askRegion asks the service for the region of the bucket. If the service refuses, it is the one that the refusal names or, if the
// caller may not ask, the default.
func (c *client) askRegion(ctx context.Context) (region string, err error) {
	var location struct {
		Name string `xml:",chardata"`
	}
	err = c.attempt(ctx, request{method: http.MethodGet, query: url.Values{"location": {""}}}, defaultRegion, decode("", &location))
	if region = refusalIn(err).Region; region != "" {
		return region, nil
	}
	if mayNotAsk(err) {
		return defaultRegion, nil
	}
	if err != nil {
		return "", err
	}
	switch region = cmp.Or(strings.TrimSpace(location.Name), defaultRegion); {
	case region == "EU": // what the oldest buckets say
		return "eu-west-1", nil
	case !regionName.MatchString(region):
		return "", errors.New("the service named an invalid region of the bucket: set the region")
	}
	return region, nil
}

// correct takes over the region that the service names in a refusal, unless the program has set one. It reports whether
// it differs from the region that the request was signed for.
func (c *client) correct(region string, err error) bool {
	right := refusalIn(err).Region
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked || right == "" || right == region {
		return false
	}
	c.region = right
	return true
}
