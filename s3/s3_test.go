package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/s3"
)

var unavailable = fault.Of(fault.Unavailable)

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return names
}

// Objects on several pages are all listed and deleted, and no others.
func TestManyObjectsAreDeleted(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "f")
	all := numbered("a/b/", 2345)
	srv.fill(t, numbered("f/a/b/", 2345)...)
	srv.fill(t, "f/a/bc/1", "f/a/b", "a/b/1")
	wantList(t, s, "a/b/", all...)

	srv.fail(nil)
	if err := s.Delete(t.Context(), "a/b/"); err != nil {
		t.Fatal(err)
	}
	if lists, deletes := srv.count("GET", "list-type"), srv.count("POST", "delete"); lists != 3 || deletes != 3 {
		t.Errorf("listed %d pages and deleted %d, want 3 and 3", lists, deletes)
	}
	wantList(t, s, "a/b/")
	wantList(t, s, "a/", "a/b", "a/bc/1")
	wantList(t, srv.open(t, ""), "a/", "a/b/1")

	srv.fail(nil)
	if err := s.Delete(t.Context(), "a/b/"); err != nil || srv.count("POST") != 0 {
		t.Errorf("second delete made %d requests: %v", srv.count("POST"), err)
	}
}

// Stores in different folders of one bucket are separate.
func TestFoldersAreApart(t *testing.T) {
	srv := serve(t)
	folders := []string{"x", "xy", "x/a", ""}
	for _, f := range folders {
		put(t, srv.open(t, f), "w/b/1", "of "+f)
	}
	if err := srv.open(t, "x").Delete(t.Context(), "w/"); err != nil {
		t.Fatal(err)
	}
	wantList(t, srv.open(t, "x"), "w/")
	for _, f := range folders[1:] {
		if got := read(t, srv.open(t, f), "w/b/1"); got != "of "+f {
			t.Errorf("folder %q has %q", f, got)
		}
	}
}

// Concurrent deletions of the same objects all succeed.
func TestManyDeleteTheSame(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	srv.fill(t, numbered("a/", 50)...)
	srv.fill(t, "b/1")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Delete(t.Context(), "a/"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantList(t, s, "a/")
	wantList(t, s, "b/", "b/1")
}

// An empty object that represents a folder is not listed, but is deleted.
func TestObjectsThatShowAFolder(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	srv.fill(t, "a/b/", "a/b/1")
	wantList(t, s, "a/b/", "a/b/1")
	if err := s.Delete(t.Context(), "a/b/"); err != nil {
		t.Fatal(err)
	}
	if o, err := srv.backend.GetObject(bucket, "a/b/", nil); err == nil {
		t.Errorf("object still exists: %v", o.Name)
	}
}

// calls are the operations of a store, on an existing artifact.
var calls = []struct {
	name string
	call func(context.Context, batch.ArtifactStore) error
}{
	{"put", func(ctx context.Context, s batch.ArtifactStore) error {
		return s.Put(ctx, "a/new", strings.NewReader("new"))
	}},
	{"put parts", func(ctx context.Context, s batch.ArtifactStore) error {
		return s.Put(ctx, "a/new", bytes.NewReader(pattern(17<<20)))
	}},
	{"open", func(ctx context.Context, s batch.ArtifactStore) error {
		r, err := s.Open(ctx, "a/old")
		if err != nil {
			return err
		}
		_, err = io.ReadAll(r)
		return errors.Join(err, r.Close())
	}},
	{"list", func(ctx context.Context, s batch.ArtifactStore) error {
		_, err := s.List(ctx, "a/")
		return err
	}},
	{"delete", func(ctx context.Context, s batch.ArtifactStore) error { return s.Delete(ctx, "a/") }},
}

// A failure of the service or the network is retried a few times, then returned as temporary
// with its cause. A later call succeeds.
func TestTemporaryFailures(t *testing.T) {
	failures := map[string]faulty{
		"503":             status(503, "SlowDown"),
		"503 from others": status(503, ""),
		"500":             status(500, "InternalError"),
		"429":             status(429, "TooManyRequests"),
		"cut":             cut,
	}
	for name, f := range failures {
		for _, c := range calls {
			t.Run(c.name+" "+name, func(t *testing.T) {
				srv := serve(t)
				s := srv.open(t, "")
				put(t, s, "a/old", "old")
				srv.fail(f)
				err := c.call(t.Context(), s)
				if !errors.Is(err, unavailable) || errors.Unwrap(err) == nil && c.name != "delete" {
					t.Errorf("%v", err)
				}
				noSecret(t, err)
				if n := srv.count(); n < 2 {
					t.Errorf("got %d attempts, want at least 2", n)
				}
				srv.fail(times(1, f))
				if err := c.call(t.Context(), s); err != nil {
					t.Errorf("after one failure: %v", err)
				}
				if c.name == "delete" {
					wantList(t, s, "a/")
				}
			})
		}
	}
}

// A truncated response is an error.
func TestAnswersThatBreakOff(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	put(t, s, "a/old", "old")
	srv.fail(on(cutBody, "GET"))
	for _, c := range calls[2:] {
		if err := c.call(t.Context(), s); !errors.Is(err, unavailable) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	srv.fail(on(cutBody, "POST", "delete"))
	if err := s.Delete(t.Context(), "a/"); !errors.Is(err, unavailable) {
		t.Errorf("delete: %v", err)
	}
	srv.fail(nil)
	wantList(t, s, "a/", "a/old")
}

// An unreachable service is unavailable.
func TestNobodyListens(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	srv.Close()
	for _, c := range calls {
		if err := c.call(t.Context(), s); !errors.Is(err, unavailable) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// An untrusted certificate is not retried.
func TestAnUnknownCertificate(t *testing.T) {
	srv := prepare(t)
	srv.StartTLS()
	s := srv.open(t, "")
	for _, c := range calls {
		if err := c.call(t.Context(), s); err == nil || errors.Is(err, unavailable) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The error of a deletion names the objects that are left. The others are deleted, and a later
// call deletes the rest.
func TestOneObjectIsNotDeleted(t *testing.T) {
	for code, temporary := range map[string]bool{"AccessDenied": false, "InternalError": true, "InvalidArgument": false} {
		t.Run(code, func(t *testing.T) {
			srv := serve(t)
			s := srv.open(t, "f")
			srv.fill(t, numbered("f/a/", 1500)...)
			srv.fail(srv.keep("f/a/00700", code))
			for range 2 {
				err := s.Delete(t.Context(), "a/")
				if err == nil || !strings.Contains(err.Error(), `"a/00700"`) || errors.Is(err, unavailable) != temporary {
					t.Errorf("%v", err)
				}
				noSecret(t, err)
				wantList(t, s, "a/", "a/00700")
			}
			srv.fail(nil)
			if err := s.Delete(t.Context(), "a/"); err != nil {
				t.Error(err)
			}
			wantList(t, s, "a/")
		})
	}
}

// A key with a control character, which the document of a deletion cannot contain, is listed in the encoding of URLs and deleted
// with a request of its own.
func TestAKeyThatXMLCannotContain(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	srv.fill(t, "a/\x01\x02", "a/2", "b/\x01")
	srv.fail(on(body("<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a/%01%02</Key></Contents><Contents><Key>a/2</Key></Contents></ListBucketResult>"), "list-type"))
	wantList(t, s, "a/", "a/\x01\x02", "a/2")
	if err := s.Delete(t.Context(), "a/"); err != nil {
		t.Error(err)
	}
	if n := srv.count("DELETE", "/a/%01%02"); n != 1 {
		t.Errorf("%d requests deleted the object, want 1", n)
	}
	srv.fail(nil)
	wantList(t, s, "a/")
	if got := read(t, s, "b/\x01"); got != "x" {
		t.Errorf("got %q, want x", got)
	}
}

// An object that another caller deleted first is not a failure.
func TestAnObjectThatIsGoneIsDeleted(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	srv.fill(t, "a/1", "a/2")
	srv.fail(srv.keep("a/1", "NoSuchKey"))
	if err := s.Delete(t.Context(), "a/"); err != nil {
		t.Error(err)
	}
}

// A deletion that fails halfway is completed by another, and its error does not name thousands
// of objects.
func TestADeletionGoesOn(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	all := numbered("a/", 2500)
	srv.fill(t, all...)
	var seen atomic.Int64
	srv.fail(on(func(w http.ResponseWriter, r *http.Request) bool {
		return seen.Add(1) > 1 && status(503, "SlowDown")(w, r)
	}, "POST", "delete"))
	err := s.Delete(t.Context(), "a/")
	if !errors.Is(err, unavailable) || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "and 1490 more") {
		t.Errorf("%v", err)
	}
	wantList(t, s, "a/", all[1000:]...)

	srv.fail(on(status(503, "SlowDown"), "continuation-token"))
	if err := s.Delete(t.Context(), "a/"); !errors.Is(err, unavailable) {
		t.Errorf("without the second page: got %v, want unavailable", err)
	}
	srv.fail(nil)
	if err := s.Delete(t.Context(), "a/"); err != nil {
		t.Error(err)
	}
	wantList(t, s, "a/")
}

// An object without the prefix is not deleted, even if the service lists it.
func TestAListOfOthersIsNotBelieved(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	srv.fill(t, "a/1", "b/1")
	srv.fail(on(body("<ListBucketResult><Contents><Key>a/1</Key></Contents><Contents><Key>b/1</Key></Contents></ListBucketResult>"), "list-type"))
	if err := s.Delete(t.Context(), "a/"); err == nil || srv.count("POST") != 0 {
		t.Errorf("deleted foreign objects with %d requests: %v", srv.count("POST"), err)
	}
}

// A deletion that the service does not confirm is an error.
func TestASilentDeletionIsNone(t *testing.T) {
	for _, text := range []string{"<DeleteResult></DeleteResult>", "<html>hello</html>", "", "<Error><Code>AccessDenied</Code></Error>"} {
		srv := serve(t)
		s := srv.open(t, "")
		srv.fill(t, "a/1")
		srv.fail(on(body(text), "POST", "delete"))
		if err := s.Delete(t.Context(), "a/"); err == nil {
			t.Errorf("response %q was accepted as a deletion", text)
		}
	}
}

// A refusal of the service is neither temporary nor a missing object.
func TestRefusals(t *testing.T) {
	for _, f := range []faulty{status(403, "AccessDenied"), status(404, "NoSuchBucket"), status(403, "SignatureDoesNotMatch"), status(501, "NotImplemented")} {
		srv := serve(t)
		s := srv.open(t, "")
		put(t, s, "a/old", "old")
		srv.fail(f)
		for _, c := range calls {
			err := c.call(t.Context(), s)
			if err == nil || errors.Is(err, unavailable) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", c.name, err)
			}
			noSecret(t, err)
		}
	}
}

// Canceling the context ends a call while the service does not respond.
func TestACancelledContextStops(t *testing.T) {
	for _, c := range calls {
		for _, words := range [][]string{{""}, {"POST", "delete"}} {
			if words[0] != "" && c.name != "delete" {
				continue
			}
			t.Run(strings.Join(append(words, c.name), " "), func(t *testing.T) {
				srv := serve(t)
				s := srv.open(t, "")
				put(t, s, "a/old", "old")
				arrived := make(chan struct{}, 10)
				srv.fail(on(hang(arrived), words...))
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-arrived
					cancel()
				}()
				if err := c.call(ctx, s); !errors.Is(err, context.Canceled) || errors.Is(err, unavailable) {
					t.Errorf("%v", err)
				}
				srv.fail(nil)
				wantList(t, s, "a/", "a/old")
			})
		}
	}
}

// A canceled context sends no request and stops a read.
func TestAContextThatHasEnded(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	if err := s.Put(t.Context(), "a/big", bytes.NewReader(pattern(32<<20))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := s.Open(ctx, "a/big")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	srv.fail(nil)
	for _, c := range calls {
		if err := c.call(ctx, s); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if n := srv.count(); n != 0 {
		t.Errorf("got %d requests, want 0", n)
	}
}

// A large artifact is sent in parts, one that fits into a part in one request. The parts of an upload that
// fails are removed, even if the context is canceled.
func TestPartsAreTakenBack(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	srv.fail(nil)
	put(t, s, "a/small", "x")
	if n := srv.count(); n != 1 {
		t.Errorf("a small object took %d requests, want 1", n)
	}
	put(t, s, "a/small", string(pattern(16<<20-1)))
	if n := srv.count(); n != 2 {
		t.Errorf("an object of almost a part took %d requests, want 1", n-1)
	}
	half := io.MultiReader(bytes.NewReader(pattern(40<<20)), iotest.ErrReader(io.ErrUnexpectedEOF))
	srv.fail(nil)
	if err := s.Put(t.Context(), "a/big", half); !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unavailable) {
		t.Errorf("%v", err)
	}
	if parts, back := srv.count("PUT", "partNumber"), srv.count("DELETE", "uploadId"); parts != 2 || back != 1 {
		t.Errorf("uploaded %d parts, want 2, and aborted %d times, want 1", parts, back)
	}

	ctx, cancel := context.WithCancel(t.Context())
	srv.fail(nil)
	more := 10
	stop := readerFunc(func([]byte) (int, error) {
		cancel()
		if more--; more < 0 {
			return 0, errors.New("read on after the end")
		}
		return 0, nil
	})
	if err := s.Put(ctx, "a/big", io.MultiReader(bytes.NewReader(pattern(20<<20)), stop)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := srv.count("DELETE", "uploadId"); n != 1 {
		t.Errorf("aborted %d uploads, want 1", n)
	}
	wantList(t, s, "a/", "a/small")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Without credentials in the Config, those of the environment are used.
func TestCredentialsOfTheEnvironment(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "grace")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("AWS_SESSION_TOKEN", "token")
	srv := serve(t)
	for want, change := range map[string]func(*s3.Config){
		"Credential=ada/":   func(*s3.Config) {},
		"Credential=grace/": func(c *s3.Config) { c.AccessKey, c.SecretKey = "", "" },
	} {
		c := srv.config()
		change(&c)
		s, err := s3.New(c)
		if err != nil {
			t.Fatal(err)
		}
		srv.fail(nil)
		put(t, s, "a/1", "x")
		h := srv.header(0)
		if !strings.Contains(h.Get("Authorization"), want) || (h.Get("X-Amz-Security-Token") == "token") != strings.Contains(want, "grace") {
			t.Errorf("request for %s has headers %v", want, h)
		}
	}
}

// Without a region in the Config, the region is requested from the service.
func TestTheRegionIsAskedFor(t *testing.T) {
	srv := serve(t)
	c := srv.config()
	c.Region, c.PathStyle = "", true
	s, err := s3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "a/1", "x")
	wantList(t, s, "a/", "a/1")
	if n := srv.count("location"); n != 1 {
		t.Errorf("got %d location requests, want 1", n)
	}
}

// The region that a refusal names is used, if the Config has none. A service that does not tell the region is asked as in
// the default region.
func TestTheRegionOfARefusal(t *testing.T) {
	refused := func(code, region string) faulty {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if region != "" && strings.Contains(r.Header.Get("Authorization"), "/"+region+"/s3/") {
				return false
			}
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Region>"+region+"</Region></Error>")
			return true
		}
	}
	for name, x := range map[string]struct {
		fault  faulty
		region string // of the Config
		want   string // "" for an error
	}{
		"location is refused with a region":    {refused("AuthorizationHeaderMalformed", "eu-south-2"), "", "eu-south-2"},
		"location is refused without a region": {on(status(403, "AccessDenied"), "location"), "", "us-east-1"},
		"location is another":                  {on(body("<LocationConstraint>EU</LocationConstraint>"), "location"), "", "eu-west-1"},
		"location is none":                     {on(body("<LocationConstraint/>"), "location"), "", "us-east-1"},
		"location is wrong": {func(w http.ResponseWriter, r *http.Request) bool {
			return on(body("<LocationConstraint>eu-west-1</LocationConstraint>"), "location")(w, r) || refused("AuthorizationHeaderMalformed", "eu-south-2")(w, r)
		}, "", "eu-south-2"},
		"location is refused without a document":     {on(bare(403, ""), "location"), "", "us-east-1"},
		"location is not a method":                   {on(bare(405, ""), "location"), "", "us-east-1"},
		"location is not implemented":                {on(bare(501, ""), "location"), "", "us-east-1"},
		"location is refused with a region only":     {on(bare(403, "eu-south-2"), "location"), "", "eu-south-2"},
		"location is moved":                          {on(bare(301, "eu-south-2"), "location"), "", "eu-south-2"},
		"location is elsewhere":                      {on(bare(307, "eu-south-2"), "location"), "", "eu-south-2"},
		"location is refused with an invalid region": {on(bare(403, "evil.example.org/"), "location"), "", "us-east-1"},
		"location is invalid":                        {on(body("<LocationConstraint>x/y</LocationConstraint>"), "location"), "", ""},
		"the keys are refused":                       {on(status(403, "InvalidAccessKeyId"), "location"), "", ""},
		"location is no XML":                         {on(body("hello"), "location"), "", ""},
		"the region of the Config stands":            {refused("AuthorizationHeaderMalformed", "eu-south-2"), "eu-west-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			c := srv.config()
			c.Region = x.region
			s, err := s3.New(c)
			if err != nil {
				t.Fatal(err)
			}
			srv.fail(x.fault)
			for range 2 {
				err = s.Put(t.Context(), "a/1", strings.NewReader("x"))
			}
			last := srv.header(srv.count() - 1).Get("Authorization")
			if (err == nil) != (x.want != "") || x.want != "" && !strings.Contains(last, "/"+x.want+"/s3/") {
				t.Errorf("the last request is signed with %q: %v", last, err)
			}
			if n := srv.count("location"); x.want != "" && x.region == "" && n != 1 {
				t.Errorf("got %d location requests, want 1", n)
			}
		})
	}
}

// A redirect is not followed, because the signature is for another host, and is not temporary.
func TestRedirectsAreNotFollowed(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	srv.fail(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, srv.URL+"/elsewhere", http.StatusTemporaryRedirect)
		return true
	})
	for _, c := range calls {
		if err := c.call(t.Context(), s); err == nil || errors.Is(err, unavailable) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if n := srv.count("elsewhere"); n != 0 {
		t.Errorf("followed %d redirects", n)
	}
}

// A large artifact is stored only if the service confirms all of it, also if the status is 200.
func TestAnUploadThatIsNotConfirmed(t *testing.T) {
	for name, x := range map[string]struct {
		fault     faulty
		temporary bool
	}{
		"no id":             {on(body("<InitiateMultipartUploadResult></InitiateMultipartUploadResult>"), "POST", "uploads"), false},
		"no document":       {on(body("hello"), "POST", "uploads"), false},
		"error in a 200":    {on(body("<Error><Code>AccessDenied</Code></Error>"), "POST", "uploadId"), false},
		"busy in a 200":     {on(body("<Error><Code>InternalError</Code></Error>"), "POST", "uploadId"), true},
		"another document":  {on(body("<html>hello</html>"), "POST", "uploadId"), false},
		"nothing":           {on(body(""), "POST", "uploadId"), false},
		"a part has no tag": {on(body(""), "partNumber=2"), false},
		"a part is queued":  {on(bare(202, ""), "partNumber=2"), false},
		"a part is partial": {on(bare(206, ""), "partNumber=2"), false},
		"an empty success":  {on(bare(204, ""), "POST", "uploadId"), false},
		"a part is refused": {on(status(403, "AccessDenied"), "partNumber=2"), false},
		"the upload ended":  {on(status(404, "NoSuchUpload"), "POST", "uploadId"), true},
		"a lost request":    {on(cutBody, "POST", "uploadId"), true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s := srv.open(t, "")
			put(t, s, "a/1", "old")
			srv.fail(x.fault)
			err := s.Put(t.Context(), "a/1", bytes.NewReader(pattern(17<<20)))
			if err == nil || errors.Is(err, unavailable) != x.temporary {
				t.Errorf("%v", err)
			}
			noSecret(t, err)
			if begun, ended := srv.count("PUT", "partNumber=1"), srv.count("DELETE", "uploadId"); min(begun, 1) != ended {
				t.Errorf("uploaded %d parts, aborted %d times", begun, ended)
			}
			srv.fail(nil)
			if got := read(t, s, "a/1"); got != "old" {
				t.Errorf("got %d bytes, want the old content", len(got))
			}
		})
	}
}

// Other statuses than 200, and 204 for a deletion, are not a success.
func TestOtherStatusesAreNoSuccess(t *testing.T) {
	for _, code := range []int{202, 203, 204, 206} {
		srv := serve(t)
		s := srv.open(t, "")
		put(t, s, "a/old", "old")
		srv.fail(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("ETag", `"x"`)
			w.WriteHeader(code)
			return true
		})
		for _, c := range calls {
			if err := c.call(t.Context(), s); err == nil || errors.Is(err, unavailable) {
				t.Errorf("%s: %d was accepted: %v", c.name, code, err)
			}
		}
	}
}

// If the response to a request that stores an artifact is lost, the caller is told to repeat it, and the whole new artifact is
// stored. Repeating succeeds.
func TestTheResponseToAPutIsLost(t *testing.T) {
	for name, x := range map[string]struct {
		size     int
		requests []string
		lost     int // responses
		attempts int
	}{
		"whole": {3, []string{"PUT", "/a/1"}, 3, 3},
		"parts": {17 << 20, []string{"POST", "uploadId"}, 1, 2}, // the second attempt finds no upload
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s := srv.open(t, "")
			put(t, s, "a/1", "old")
			srv.fail(on(times(x.lost, srv.answered), x.requests...))
			content := pattern(x.size)
			if err := s.Put(t.Context(), "a/1", bytes.NewReader(content)); !errors.Is(err, unavailable) {
				t.Errorf("got %v, want unavailable", err)
			}
			if n := srv.count(x.requests...); n != x.attempts {
				t.Errorf("%d attempts, want %d", n, x.attempts)
			}
			srv.fail(nil)
			if got := read(t, s, "a/1"); got != string(content) {
				t.Errorf("%d bytes are stored, want %d", len(got), len(content))
			}
			if err := s.Put(t.Context(), "a/1", bytes.NewReader(content)); err != nil {
				t.Error(err)
			}
			if got := read(t, s, "a/1"); got != string(content) {
				t.Errorf("after a repetition, %d bytes are stored, want %d", len(got), len(content))
			}
		})
	}
}

// Objects have a content type of their own, not one that the service guesses.
func TestTheContentType(t *testing.T) {
	srv := serve(t)
	s := srv.open(t, "")
	for _, size := range []int{1, 17 << 20} {
		srv.fail(nil)
		put(t, s, "a/1", string(pattern(size)))
		if got := srv.header(0).Get("Content-Type"); got != "application/octet-stream" {
			t.Errorf("%d bytes are stored as %q", size, got)
		}
	}
}

// A list whose pages have no end is an error.
func TestAListThatDoesNotEnd(t *testing.T) {
	for _, text := range []string{
		"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
		"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>",
		"<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a/%zz</Key></Contents></ListBucketResult>",
	} {
		srv := serve(t)
		s := srv.open(t, "")
		srv.fail(on(body(text), "list-type"))
		if names, err := s.List(t.Context(), "a/"); err == nil || errors.Is(err, unavailable) {
			t.Errorf("%s: got %q, %v", text, names, err)
		}
	}
}

// An invalid Config is refused, and the error does not quote its values.
func TestBadConfigs(t *testing.T) {
	good := s3.Config{Endpoint: "https://s3.example.org", Bucket: bucket, AccessKey: "ada", SecretKey: secret}
	for _, fine := range []func(*s3.Config){
		func(*s3.Config) {},
		func(c *s3.Config) { c.AccessKey, c.SecretKey = "", "" },
		func(c *s3.Config) { c.Endpoint = "http://127.0.0.1:9000/" },
		func(c *s3.Config) { c.Endpoint = "http://[::1]:9000" },
		func(c *s3.Config) { c.Folder = "/a/b c/" },
	} {
		c := good
		fine(&c)
		if _, err := s3.New(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for want, change := range map[string]func(*s3.Config){
		"requires a bucket":            func(c *s3.Config) { c.Bucket = "" },
		"store bucket":                 func(c *s3.Config) { c.Bucket = "a/b" },
		"requires an":                  func(c *s3.Config) { c.Endpoint = "" },
		"a URL such as":                func(c *s3.Config) { c.Endpoint = "s3.example.org" },
		"must be a URL such":           func(c *s3.Config) { c.Endpoint = "ftp://s3.example.org" },
		"must be a URL such as":        func(c *s3.Config) { c.Endpoint = "https://" + secret + "%zz" },
		"must be a URL":                func(c *s3.Config) { c.Endpoint = "https://:9000" },
		"store endpoint":               func(c *s3.Config) { c.Endpoint = "https://not_a_host!" },
		"must not contain a user name": func(c *s3.Config) { c.Endpoint = "https://ada:" + secret + "@s3.example.org" },
		"must not have a path":         func(c *s3.Config) { c.Endpoint = "https://s3.example.org/" + secret },
		"query or a fragment":          func(c *s3.Config) { c.Endpoint = "https://s3.example.org?key=" + secret },
		"query or":                     func(c *s3.Config) { c.Endpoint = "https://s3.example.org?" },
		"a fragment":                   func(c *s3.Config) { c.Endpoint = "https://s3.example.org#" + secret },
		"object store region":          func(c *s3.Config) { c.Region = "evil.example.org/" + secret },
		"folder":                       func(c *s3.Config) { c.Folder = "a/../b" },
		"invalid object store folder":  func(c *s3.Config) { c.Folder = `a\b` },
		"both":                         func(c *s3.Config) { c.AccessKey = "" },
		"or neither":                   func(c *s3.Config) { c.SecretKey = "" },
	} {
		c := good
		change(&c)
		_, err := s3.New(c)
		if !errors.Is(err, fault.Of(fault.Validation)) || !strings.Contains(err.Error(), want) {
			t.Errorf("want error %q, got %v", want, err)
		}
		noSecret(t, err)
	}
}

// Parse accepts valid URLs and refuses others, and its errors do not quote values.
func TestURLs(t *testing.T) {
	const at = "?endpoint=https://s3.example.org"
	for text, want := range map[string]s3.Config{
		"s3://bucket" + at:     {Bucket: "bucket", Endpoint: "https://s3.example.org"},
		"s3://bucket/" + at:    {Bucket: "bucket", Endpoint: "https://s3.example.org"},
		"s3://bucket/a/b" + at: {Bucket: "bucket", Folder: "a/b", Endpoint: "https://s3.example.org"},
		"s3://my.bucket/a%20b/?endpoint=http%3A%2F%2F127.0.0.1%3A9000&region=eu-central-1&pathStyle=true": {
			Bucket: "my.bucket", Folder: "a b", Endpoint: "http://127.0.0.1:9000", Region: "eu-central-1", PathStyle: true,
		},
		"s3://bucket" + at + "&pathStyle=false": {Bucket: "bucket", Endpoint: "https://s3.example.org"},
	} {
		got, err := s3.Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
		if _, err := s3.New(got); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{
		"", "bucket", "https://bucket/a" + at, "s3:bucket" + at, "s3://" + at, "s3:///a" + at, "s3://bucket",
		"s3://ada:" + secret + "@bucket" + at, "s3://" + secret + "@bucket" + at, "s3://ada:" + secret + "/bucket" + at,
		"s3://bucket:9000" + at, "s3://bucket" + at + "#" + secret, "s3://bucket/%zz" + secret + at,
		"s3://bucket" + at + "&secretKey=" + secret, "s3://bucket" + at + "&Region=x", "s3://bucket" + at + "&region=a&region=b",
		"s3://bucket" + at + "&pathStyle=" + secret, "s3://bucket" + at + "&pathStyle", "s3://bucket" + at + "&x=" + secret + "%zz",
		"s3://bucket?endpoint=https://ada:" + secret + "@s3.example.org", "s3://bucket?endpoint=" + secret,
		"s3://bucket?endpoint=", "s3://bucket/../a" + at, "s3://bucket" + at + ";region=a",
	} {
		c, err := s3.Parse(text)
		if !errors.Is(err, fault.Of(fault.Validation)) || c != (s3.Config{}) {
			t.Errorf("%s: got %+v, %v, want a validation error", text, c, err)
		}
		noSecret(t, err)
	}
}

// noSecret checks that an error and its causes do not contain the secret.
func noSecret(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
		t.Errorf("the error contains the secret: %#v", err)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			noSecret(t, cause)
		}
	case interface{ Unwrap() []error }:
		for cause := range slices.Values(e.Unwrap()) {
			noSecret(t, cause)
		}
	}
}
