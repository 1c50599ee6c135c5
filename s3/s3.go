// Package s3 stores artifacts in a bucket of an S3-compatible object store.
//
//	c, err := s3.Parse("s3://bucket/folder?endpoint=https://s3.eu-central-1.amazonaws.com")
//	…
//	artifacts, err := s3.New(c)
//	…
//	e, err := holdfast.Open(ctx, db, holdfast.Config{}, kind, batch.Artifacts(artifacts))
//
// The credentials must allow listing the bucket, and reading, writing and deleting objects under
// the folder. In a bucket with versioning, a deleted object stays as an old version. Use a bucket
// lifecycle rule to delete old versions, and the parts of uploads that a crash left unfinished.
package s3

import (
	"net/netip"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
)

// Config is the location of the bucket and the credentials.
type Config struct {
	// Endpoint is the URL of the service, such as https://s3.eu-central-1.amazonaws.com or
	// http://127.0.0.1:9000. It must not have a path.
	Endpoint string
	// Bucket is the name of the bucket, which must exist.
	Bucket string
	// Folder is the prefix of the store's objects in the bucket. Default: none.
	Folder string
	// Region is the region of the bucket. Default: the region in the endpoint's host name; if it contains none, the
	// store asks the service.
	Region string
	// AccessKey and SecretKey are the credentials. Default: AWS_ACCESS_KEY_ID,
	// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN from the environment; without these, requests are
	// not signed.
	AccessKey, SecretKey string
	// PathStyle puts the bucket name into the request path. Default: into the host
	// name if the service is known to support that, otherwise into the path.
	PathStyle bool
}

// New returns a store in a bucket. The store is safe for concurrent use. New validates the Config
// and sends no request.
func New(c Config) (batch.ArtifactStore, error) {
	endpoint, err := c.check()
	if err != nil {
		return nil, err
	}
	return &store{client: newClient(endpoint, c), folder: c.folder()}, nil
}

// bucketName and notInBucketName are the rules for names of buckets: those of the oldest buckets, which are the least strict.
var (
	bucketName      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{1,61}[A-Za-z0-9]$`)
	notInBucketName = regexp.MustCompile(`\.\.|\.-|-\.|^(\d+\.){3}\d+$`)
)

// check validates the Config and returns the endpoint. Errors do not quote values, which may
// contain a secret.
func (c Config) check() (*url.URL, error) {
	if c.Bucket == "" {
		return nil, fault.New(fault.Validation, "the object store requires a bucket: set Config.Bucket")
	}
	if !bucketName.MatchString(c.Bucket) || notInBucketName.MatchString(c.Bucket) {
		return nil, fault.New(fault.Validation, "invalid object store bucket: use 3 to 63 letters, digits, dots and hyphens, as in the name of the bucket at the service")
	}
	if folder := strings.Trim(c.Folder, "/"); folder != "" && !valid(folder) {
		return nil, fault.New(fault.Validation, "invalid object store folder: use a relative path without .. elements, backslashes or NUL")
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return nil, fault.New(fault.Validation, "the object store's access key and secret key must be set together: set both or neither")
	}
	if c.Region != "" && !regionName.MatchString(c.Region) {
		return nil, fault.New(fault.Validation, "invalid object store region: use letters, digits, dots, hyphens and underscores, such as eu-central-1")
	}
	return endpoint(c.Endpoint)
}

// hostName matches the name of a machine.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

func validHost(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || len(name) <= 253 && hostName.MatchString(name)
}

// endpoint parses the URL of a service, which has only a scheme and a host.
func endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, fault.New(fault.Validation, "the object store requires an endpoint, such as https://s3.eu-central-1.amazonaws.com")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fault.New(fault.Validation, "the object store endpoint must be a URL such as https://s3.eu-central-1.amazonaws.com")
	case !validHost(u.Hostname()):
		return nil, fault.New(fault.Validation, "invalid object store endpoint: the host must be an IP address or a name of letters, digits, dots and hyphens")
	case u.User != nil:
		return nil, fault.New(fault.Validation, "the object store endpoint must not contain a user name or password: set the credentials separately")
	case strings.Trim(u.Path, "/") != "":
		return nil, fault.New(fault.Validation, "the object store endpoint must not have a path: set the bucket and the folder separately")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fault.New(fault.Validation, "the object store endpoint must not have a query or a fragment: remove them")
	}
	return u, nil
}

func (c Config) credentials() credentials {
	keys := credentials{access: c.AccessKey, secret: c.SecretKey}
	if keys.access == "" {
		keys = credentials{os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")}
	}
	if keys.access == "" || keys.secret == "" {
		return credentials{}
	}
	return keys
}

// folder returns the prefix of all object names: empty, or a path with a slash at the end.
func (c Config) folder() string {
	folder := strings.Trim(c.Folder, "/")
	if folder == "" {
		return ""
	}
	return path.Clean(folder) + "/"
}
