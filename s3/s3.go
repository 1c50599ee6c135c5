// Package s3 keeps artifacts in a bucket of an object store that speaks S3.
//
//	c, err := s3.Parse("s3://bucket/folder?endpoint=https://s3.eu-central-1.amazonaws.com")
//	…
//	artifacts, err := s3.New(c)
//	…
//	e, err := holdfast.Open(ctx, db, holdfast.Config{}, kind, batch.Artifacts(artifacts))
//
// The credentials must allow to list the bucket, and to read, write and delete objects
// under the folder. In a bucket that keeps versions, what is deleted stays as an old
// version: a lifecycle rule of the bucket clears these, and also the parts of uploads
// that a killed process left.
package s3

import (
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
)

// Config says where the bucket is and who asks for it.
type Config struct {
	// Endpoint is the URL of the service, such as https://s3.eu-central-1.amazonaws.com or
	// http://127.0.0.1:9000. It has no path.
	Endpoint string
	// Bucket exists already.
	Bucket string
	// Folder is a prefix in the bucket under which everything is kept. Default: none.
	Folder string
	// Region of the bucket. Default: that of the endpoint, or else the service is asked.
	Region string
	// AccessKey and SecretKey are the credentials. Default: AWS_ACCESS_KEY_ID,
	// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment; without these, requests
	// are not signed.
	AccessKey, SecretKey string
	// PathStyle has the bucket's name in the path of a request. Default: in the name of the
	// host where the service is known to take it there, else in the path.
	PathStyle bool
}

// tries is how often a request is made before it is given up. Who called tries again, later.
const tries = 3

// New returns a store in a bucket, which is safe for concurrent use. It checks the
// configuration and asks the service for nothing yet.
func New(c Config) (batch.Store, error) {
	endpoint, err := c.check()
	if err != nil {
		return nil, err
	}
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:        c.credentials(),
		Secure:       endpoint.Scheme == "https",
		Region:       c.Region,
		BucketLookup: c.lookup(),
		MaxRetries:   tries,
	})
	if err != nil {
		return nil, fault.New(fault.Validation, "the endpoint of the object store: %v", err)
	}
	return &store{client: client, bucket: c.Bucket, folder: c.folder()}, nil
}

// check returns the endpoint. No error quotes what it refuses: it may hold a secret.
func (c Config) check() (*url.URL, error) {
	if c.Bucket == "" {
		return nil, fault.New(fault.Validation, "the object store needs the name of a bucket")
	}
	if err := s3utils.CheckValidBucketName(c.Bucket); err != nil {
		return nil, fault.New(fault.Validation, "the bucket of the object store: %v", err)
	}
	if folder := strings.Trim(c.Folder, "/"); folder != "" && !valid(folder) {
		return nil, fault.New(fault.Validation, "the folder of the object store is no path in a bucket")
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return nil, fault.New(fault.Validation, "the object store needs both an access key and a secret key, or neither")
	}
	return endpoint(c.Endpoint)
}

// endpoint reads the URL of a service, which is a scheme and a host.
func endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, fault.New(fault.Validation, "the object store needs an endpoint, such as https://s3.eu-central-1.amazonaws.com")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fault.New(fault.Validation, "the endpoint of the object store is no URL such as https://s3.eu-central-1.amazonaws.com")
	case u.User != nil:
		return nil, fault.New(fault.Validation, "the endpoint of the object store has a user: credentials are not part of a URL")
	case strings.Trim(u.Path, "/") != "":
		return nil, fault.New(fault.Validation, "the endpoint of the object store has a path: the bucket and the folder are set apart from it")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fault.New(fault.Validation, "the endpoint of the object store has something after its host")
	}
	return u, nil
}

func (c Config) credentials() *credentials.Credentials {
	if c.AccessKey == "" {
		return credentials.NewEnvAWS()
	}
	return credentials.NewStaticV4(c.AccessKey, c.SecretKey, "")
}

func (c Config) lookup() minio.BucketLookupType {
	if c.PathStyle {
		return minio.BucketLookupPath
	}
	return minio.BucketLookupAuto
}

// folder is what every object's name begins with: nothing, or a path and a slash.
func (c Config) folder() string {
	folder := strings.Trim(c.Folder, "/")
	if folder == "" {
		return ""
	}
	return path.Clean(folder) + "/"
}
