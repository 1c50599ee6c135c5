package s3_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/s3"
)

func TestMain(m *testing.M) {
	s3.SetRetryUnit(time.Millisecond)
	goleak.VerifyTestMain(m)
}

const (
	bucket = "bucket"
	secret = "hunter2hunter2"
)

// server is an S3 server for tests that can simulate failures.
type server struct {
	*httptest.Server
	t       *testing.T
	backend *s3mem.Backend
	service http.Handler

	mu       sync.Mutex
	requests []string
	headers  []http.Header
	faulty   faulty
}

// faulty responds to a request instead of the service, or returns false.
type faulty func(w http.ResponseWriter, r *http.Request) bool

func serve(t *testing.T) *server {
	t.Helper()
	s := prepare(t)
	s.Start()
	return s
}

// prepare returns a server that is not started.
func prepare(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, backend: s3mem.New()}
	if err := s.backend.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	s.service = gofakes3.New(s.backend).Server()
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.RequestURI)
	s.headers = append(s.headers, r.Header.Clone())
	f := s.faulty
	s.mu.Unlock()
	switch {
	case f != nil && f(w, r):
	case r.ContentLength < 0:
		status(http.StatusLengthRequired, "MissingContentLength")(w, r)
	default:
		if err := verify(r); err != nil {
			s.t.Errorf("%s %s: %v", r.Method, r.RequestURI, err)
			status(http.StatusForbidden, "SignatureDoesNotMatch")(w, r)
			return
		}
		s.service.ServeHTTP(w, r)
	}
}

// verify returns what is wrong with the signature of a request, as a service would compute it: from the bytes that
// arrived. An unsigned request is in order.
func verify(r *http.Request) error {
	got := r.Header.Get("Authorization")
	if got == "" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if sum := r.Header.Get("X-Amz-Content-Sha256"); sum != fmt.Sprintf("%x", sha256.Sum256(body)) {
		return fmt.Errorf("the body does not have the checksum %q", sum)
	}
	m := regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=\w+/(\d{8})/([\w-]+)/s3/aws4_request,SignedHeaders=([a-z0-9;-]+),Signature=([0-9a-f]{64})$`).FindStringSubmatch(got)
	if m == nil {
		return fmt.Errorf("authorization is %q", got)
	}
	day, region, signed := m[1], m[2], strings.Split(m[3], ";")
	if !slices.IsSorted(signed) || !slices.Contains(signed, "host") {
		return fmt.Errorf("signed headers are %q", signed)
	}
	canonical := r.Method + "\n"
	rawPath, rawQuery, _ := strings.Cut(r.RequestURI, "?")
	parameters := strings.Split(rawQuery, "&")
	slices.Sort(parameters)
	canonical += rawPath + "\n" + strings.Join(parameters, "&") + "\n"
	for _, name := range signed {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		canonical += name + ":" + value + "\n"
	}
	for name := range r.Header {
		if name = strings.ToLower(name); (strings.HasPrefix(name, "x-amz-") || name == "content-md5") && !slices.Contains(signed, name) {
			return fmt.Errorf("header %s is not signed", name)
		}
	}
	canonical += "\n" + strings.Join(signed, ";") + "\n" + r.Header.Get("X-Amz-Content-Sha256")
	text := fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%x", r.Header.Get("X-Amz-Date"), day, region, sha256.Sum256([]byte(canonical)))
	key := []byte("AWS4" + secret)
	for _, part := range []string{day, region, "s3", "aws4_request", text} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	if fmt.Sprintf("%x", key) != m[4] {
		return fmt.Errorf("the signature of %q is wrong", canonical)
	}
	return nil
}

// fail sets the fault for later requests, or nil for none. It resets the counts.
func (s *server) fail(f faulty) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faulty, s.requests, s.headers = f, nil, nil
}

// count returns the number of requests that contain all the words.
func (s *server) count(words ...string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(r, w) }) {
			n++
		}
	}
	return n
}

// header returns the header of the i-th request.
func (s *server) header(i int) http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers[i]
}

// fill stores objects directly, without HTTP.
func (s *server) fill(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := s.backend.PutObject(bucket, key, nil, strings.NewReader("x"), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *server) config() s3.Config {
	return s3.Config{Endpoint: s.URL, Bucket: bucket, Region: "us-east-1", AccessKey: "ada", SecretKey: secret}
}

func (s *server) open(t *testing.T, folder string) batch.ArtifactStore {
	t.Helper()
	c := s.config()
	c.Folder = folder
	store, err := s3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// on applies a fault to requests that contain all the words.
func on(f faulty, words ...string) faulty {
	return func(w http.ResponseWriter, r *http.Request) bool {
		text := r.Method + " " + r.RequestURI
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false
			}
		}
		return f(w, r)
	}
}

// times applies a fault to the first n requests.
func times(n int, f faulty) faulty {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		return seen.Add(1) <= int64(n) && f(w, r)
	}
}

// status responds with a status and a code.
func status(n int, code string) faulty {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(n)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>no</Message></Error>")
		return true
	}
}

// body responds with a text.
func body(text string) faulty {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, text)
		return true
	}
}

// bare responds with a status and perhaps a region, and without a document.
func bare(n int, region string) faulty {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if region != "" {
			w.Header().Set("X-Amz-Bucket-Region", region)
		}
		w.WriteHeader(n)
		return true
	}
}

// answered executes a request, and closes the connection in the middle of the response.
func (s *server) answered(w http.ResponseWriter, r *http.Request) bool {
	s.service.ServeHTTP(httptest.NewRecorder(), r)
	return cutBody(w, r)
}

// cut closes the connection.
func cut(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

// cutBody closes the connection in the middle of the response.
func cutBody(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Length", "1000")
	w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
	_, _ = io.WriteString(w, "<ListBucketResult>")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// hang reports a request on arrived and blocks until the caller is gone.
func hang(arrived chan<- struct{}) faulty {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		// The server detects a closed connection only after it has read the body.
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
		return true
	}
}

// keep makes the service delete all objects except one, for which it returns a code.
func (s *server) keep(key, code string) faulty {
	return on(func(w http.ResponseWriter, r *http.Request) bool {
		var in gofakes3.DeleteRequest
		if err := xml.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return true
		}
		asked := len(in.Objects)
		in.Objects = slices.DeleteFunc(in.Objects, func(o gofakes3.ObjectID) bool { return o.Key == key })
		text, err := xml.Marshal(in)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return true
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		answer := httptest.NewRecorder()
		s.service.ServeHTTP(answer, r)
		out := answer.Body.String()
		if asked > len(in.Objects) {
			out = strings.Replace(out, "</DeleteResult>", "<Error><Key>"+key+"</Key><Code>"+code+"</Code><Message>Access Denied</Message></Error></DeleteResult>", 1)
		}
		w.WriteHeader(answer.Code)
		_, _ = io.WriteString(w, out)
		return true
	}, "POST", "delete")
}
