package s3

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The examples of Amazon's documentation, "Authenticating Requests: Using the Authorization Header (AWS Signature
// Version 4)".
func TestSignaturesOfTheDocumentation(t *testing.T) {
	keys := credentials{access: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	c := client{endpoint: url.URL{Scheme: "https", Host: "s3.amazonaws.com"}, bucket: "examplebucket", hostStyle: true}
	for want, r := range map[string]request{
		"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41": {method: http.MethodGet, key: "test.txt", header: http.Header{"Range": {"bytes=0-9"}}},
		"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd": {
			method: http.MethodPut, key: "test$file.text", body: []byte("Welcome to Amazon S3."),
			header: http.Header{"Date": {"Fri, 24 May 2013 00:00:00 GMT"}, "X-Amz-Storage-Class": {"REDUCED_REDUNDANCY"}},
		},
		"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543": {method: http.MethodGet, query: url.Values{"lifecycle": {""}}},
		"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7": {method: http.MethodGet, query: url.Values{"max-keys": {"2"}, "prefix": {"J"}}},
	} {
		q, err := http.NewRequest(r.method, c.url(r, "us-east-1").String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range r.header {
			q.Header[name] = values
		}
		sign(q, keys, "us-east-1", checksum(r.body), time.Date(2013, time.May, 24, 0, 0, 0, 0, time.UTC))
		if got := q.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+want) {
			t.Errorf("%s %s: got %s, want the signature %s", r.method, q.URL, got, want)
		}
	}
}

// The bucket is in the host name where the service is known to support it, and a known region is not asked for.
func TestWhereTheBucketIs(t *testing.T) {
	for _, x := range []struct{ endpoint, bucket, region, want, inRegion string }{
		{"https://s3.eu-central-1.amazonaws.com", "bucket", "", "https://bucket.s3.eu-central-1.amazonaws.com/a", "eu-central-1"},
		{"https://s3.eu-central-1.amazonaws.com", "my.bucket", "", "https://s3.eu-central-1.amazonaws.com/my.bucket/a", "eu-central-1"},
		{"http://s3.eu-central-1.amazonaws.com", "my.bucket", "", "http://my.bucket.s3.eu-central-1.amazonaws.com/a", "eu-central-1"},
		{"https://s3-us-west-2.amazonaws.com", "bucket", "", "https://bucket.s3-us-west-2.amazonaws.com/a", "us-west-2"},
		{"https://s3.dualstack.us-gov-west-1.amazonaws.com", "bucket", "", "https://bucket.s3.dualstack.us-gov-west-1.amazonaws.com/a", "us-gov-west-1"},
		{"https://s3-fips.dualstack.us-east-1.amazonaws.com", "bucket", "", "https://bucket.s3-fips.dualstack.us-east-1.amazonaws.com/a", "us-east-1"},
		{"https://s3.cn-north-1.amazonaws.com.cn", "bucket", "", "https://bucket.s3.cn-north-1.amazonaws.com.cn/a", "cn-north-1"},
		{"https://bucket.vpce-1a2b3c4d-5e6f.s3.us-east-1.vpce.amazonaws.com", "bucket", "", "https://bucket.bucket.vpce-1a2b3c4d-5e6f.s3.us-east-1.vpce.amazonaws.com/a", "us-east-1"},
		{"https://s3.amazonaws.com", "bucket", "", "https://bucket.s3.amazonaws.com/a", ""},
		{"https://s3.amazonaws.com", "bucket", "eu-south-1", "https://bucket.s3.eu-south-1.amazonaws.com/a", "eu-south-1"},
		{"https://s3.amazonaws.com", "bucket", "cn-north-1", "https://bucket.s3.cn-north-1.amazonaws.com.cn/a", "cn-north-1"},
		{"https://storage.googleapis.com", "bucket", "", "https://bucket.storage.googleapis.com/a", ""},
		{"https://oss-cn-hangzhou.aliyuncs.com", "bucket", "", "https://bucket.oss-cn-hangzhou.aliyuncs.com/a", ""},
		{"https://minio.example.org:443", "bucket", "", "https://minio.example.org/bucket/a", ""},
		{"http://[::1]:80", "bucket", "", "http://[::1]/bucket/a", ""},
		{"http://127.0.0.1:9000", "bucket", "x", "http://127.0.0.1:9000/bucket/a", "x"},
		{"https://s3.eu-central-1.amazonaws.com.example.org", "bucket", "", "https://s3.eu-central-1.amazonaws.com.example.org/bucket/a", ""},
		{"https://s3-external-1.amazonaws.com", "bucket", "", "https://s3-external-1.amazonaws.com/bucket/a", ""},
	} {
		u, err := endpoint(x.endpoint)
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(u, Config{Bucket: x.bucket, Region: x.region})
		if got := c.url(request{key: "a"}, c.region).String(); got != x.want || c.region != x.inRegion {
			t.Errorf("%s: got %s in region %q, want %s in %q", x.endpoint, got, c.region, x.want, x.inRegion)
		}
		c = newClient(u, Config{Bucket: x.bucket, PathStyle: true})
		if got := c.url(request{key: "a"}, c.region); !strings.HasSuffix(got.Path, "/"+x.bucket+"/a") {
			t.Errorf("%s with PathStyle: got %s", x.endpoint, got)
		}
	}
}

// A key that XML cannot contain is deleted with a request of its own.
func TestKeysInXML(t *testing.T) {
	for key, want := range map[string]bool{"a/b": true, "a\tb\nc": true, "日本": true, "a\x01": false, "\xff": false, "\uFFFE": false, "\uFFFD": true} {
		if got := inXML(key); got != want {
			t.Errorf("inXML(%q) = %v, want %v", key, got, want)
		}
	}
}
