package s3

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// page is a page of a list of objects.
type page struct {
	XMLName      xml.Name `xml:"ListBucketResult"`
	EncodingType string
	Contents     []struct{ Key string }
	IsTruncated  bool
	Next         string `xml:"NextContinuationToken"`
}

// keys returns all keys that begin with a prefix.
func (s *store) keys(ctx context.Context, prefix string) (keys []string, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {prefix}, "encoding-type": {"url"}}
	for {
		var p page
		if err := s.client.call(ctx, request{method: http.MethodGet, query: query}, &p); err != nil {
			return nil, err
		}
		for _, o := range p.Contents {
			if p.EncodingType == "url" {
				if o.Key, err = url.QueryUnescape(o.Key); err != nil {
					return nil, fmt.Errorf("the service listed an invalid key: %w", err)
				}
			}
			// Listed objects are deleted, so a service that ignores the prefix must not be trusted.
			if !strings.HasPrefix(o.Key, prefix) {
				return nil, fmt.Errorf("the service listed %q, which does not have the prefix %q", o.Key, prefix)
			}
			keys = append(keys, o.Key)
		}
		if !p.IsTruncated {
			return keys, nil
		}
		if p.Next == "" || p.Next == query.Get("continuation-token") {
			return nil, errors.New("the service listed a page without a position of the next one")
		}
		query.Set("continuation-token", p.Next)
	}
}

// errUnconfirmed is the error of an object whose deletion the service did not confirm.
var errUnconfirmed = errors.New("the service did not confirm the deletion")

// maxDeletions is the number of objects that one request can delete.
const maxDeletions = 1000

// remove deletes objects and returns the errors of those that are left.
func (s *store) remove(ctx context.Context, keys []string) (left map[string]error) {
	left = make(map[string]error, len(keys))
	var together []string
	for _, key := range keys {
		left[key] = errUnconfirmed
		if inXML(key) {
			together = append(together, key)
		} else {
			settle(left, key, s.client.call(ctx, request{method: http.MethodDelete, key: key}, nil))
		}
	}
	for some := range slices.Chunk(together, maxDeletions) {
		s.removeTogether(ctx, some, left)
	}
	return left
}

// settle records the outcome of the deletion of an object.
func settle(left map[string]error, key string, err error) {
	if err == nil || missing(err) {
		delete(left, key)
	} else {
		left[key] = err
	}
}

// inXML reports whether a key can be written into an XML document. Control characters cannot.
func inXML(key string) bool {
	return utf8.ValidString(key) && !strings.ContainsFunc(key, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' || r == '\uFFFE' || r == '\uFFFF'
	})
}

// removeTogether deletes objects with one request.
func (s *store) removeTogether(ctx context.Context, keys []string, left map[string]error) {
	type object struct{ Key string }
	in := struct {
		XMLName xml.Name `xml:"Delete"`
		Object  []object
	}{}
	for _, key := range keys {
		in.Object = append(in.Object, object{key})
	}
	var out struct {
		XMLName xml.Name `xml:"DeleteResult"`
		Deleted []object
		Error   []struct {
			Key string
			serviceError
		}
	}
	body, err := xml.Marshal(in)
	if err == nil {
		sum := md5.Sum(body) // the protocol requires this one
		header := http.Header{"Content-Md5": {base64.StdEncoding.EncodeToString(sum[:])}}
		err = s.client.call(ctx, request{method: http.MethodPost, query: url.Values{"delete": {""}}, header: header, body: body}, &out)
	}
	if err != nil {
		for _, key := range keys {
			left[key] = err
		}
		return
	}
	for _, o := range out.Deleted {
		delete(left, o.Key)
	}
	for _, o := range out.Error {
		settle(left, o.Key, &o.serviceError)
	}
}
