package s3

import (
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// Parse parses a Config from a URL:
//
//	s3://bucket/folder?endpoint=https://s3.eu-central-1.amazonaws.com&region=eu-central-1&pathStyle=true
//
// The folder, the region and pathStyle are optional. A URL must not contain credentials, because URLs appear in process
// lists and logs. Set the keys in the Config or in the environment instead.
func Parse(text string) (Config, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "s3" || u.Opaque != "" || u.Fragment != "" || u.Host != u.Hostname():
		return Config{}, fault.New(fault.Validation, "the object store URL must have the form s3://bucket/folder?endpoint=https://s3.eu-central-1.amazonaws.com")
	case u.User != nil:
		return Config{}, fault.New(fault.Validation, "the object store URL must not contain a user name or password: set the credentials separately")
	}
	c := Config{Bucket: u.Host, Folder: strings.Trim(u.Path, "/")}
	if err := c.parameters(u.RawQuery); err != nil {
		return Config{}, err
	}
	if _, err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// parameters parses the query of the URL. Errors contain names but no values.
func (c *Config) parameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fault.New(fault.Validation, "the object store URL has an invalid query: percent-encode special characters")
	}
	for name, all := range values {
		if len(all) != 1 {
			return fault.New(fault.Validation, "the object store URL has parameter %q more than once: specify it only once", name)
		}
		if err := c.set(name, all[0]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) set(name, value string) error {
	switch name {
	case "endpoint":
		c.Endpoint = value
	case "region":
		c.Region = value
	case "pathStyle":
		if value != "true" && value != "false" {
			return fault.New(fault.Validation, "parameter pathStyle in the object store URL must be true or false")
		}
		c.PathStyle = value == "true"
	default:
		return fault.New(fault.Validation, "the object store URL has the unknown parameter %q: use only endpoint, region and pathStyle", name)
	}
	return nil
}
