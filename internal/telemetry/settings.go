package telemetry

import (
	"crypto/tls"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/tlsfiles"
)

// settings are what the variables of OpenTelemetry say about the collector.
type settings struct {
	endpoint *url.URL
	headers  map[string]string
	timeout  time.Duration
	gzip     bool
	tls      *tls.Config // nil for the default
}

// defaultTimeout limits an attempt.
const defaultTimeout = 10 * time.Second

// exporterVar returns the name and the value of a setting of the exporter: for traces if it is set, otherwise for all signals.
func exporterVar(name string) (variable, value string) {
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		if value := strings.TrimSpace(os.Getenv(prefix + name)); value != "" {
			return prefix + name, value
		}
	}
	return "", ""
}

// readSettings reads the settings, or returns nil if no endpoint is set. Errors do not contain values, which may be secret.
func readSettings() (*settings, error) {
	variable, text := exporterVar("ENDPOINT")
	if text == "" {
		return nil, nil
	}
	s := &settings{timeout: defaultTimeout}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fault.New(fault.Validation, "%s must be a URL such as http://127.0.0.1:4318", variable)
	}
	switch {
	case variable == "OTEL_EXPORTER_OTLP_ENDPOINT": // the base of the URLs of all signals
		u = u.JoinPath("v1/traces")
	case u.Path == "":
		u.Path = "/"
	}
	s.endpoint = u
	if variable, text = exporterVar("PROTOCOL"); text != "" && text != "http/protobuf" {
		return nil, fault.New(fault.Validation, "OTLP protocol %q is not supported: set %s to http/protobuf and use the collector's HTTP port (4318)", text, variable)
	}
	if variable, text = exporterVar("HEADERS"); text != "" {
		if s.headers, err = headers(text); err != nil {
			return nil, fault.New(fault.Validation, "%s is invalid: use name=value pairs separated by commas, and percent-encode special characters", variable)
		}
	}
	if variable, text = exporterVar("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fault.New(fault.Validation, "%s must be a number of milliseconds above 0, got %q", variable, text)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	if variable, text = exporterVar("COMPRESSION"); text != "" && text != "gzip" && text != "none" {
		return nil, fault.New(fault.Validation, "%s must be gzip or none, got %q", variable, text)
	}
	s.gzip = text == "gzip"
	var files tlsfiles.Files
	_, files.CA = exporterVar("CERTIFICATE")
	_, files.Cert = exporterVar("CLIENT_CERTIFICATE")
	_, files.Key = exporterVar("CLIENT_KEY")
	if u.Scheme == "http" && files != (tlsfiles.Files{}) {
		return nil, fault.New(fault.Validation, "certificates of the collector are set, but its endpoint begins with http://, so spans would not be encrypted: use https://, or unset OTEL_EXPORTER_OTLP_CERTIFICATE and the others")
	}
	s.tls, err = tlsfiles.Client(files)
	return s, err
}

// headers parses name=value pairs, whose names and values are percent-encoded.
func headers(text string) (map[string]string, error) {
	all := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name, err := url.PathUnescape(strings.TrimSpace(name))
		if !ok || err != nil || name == "" || strings.ContainsFunc(name, notInToken) {
			return nil, fault.New(fault.Validation, "invalid name of a header")
		}
		if value, err = url.PathUnescape(strings.TrimSpace(value)); err != nil || strings.ContainsFunc(value, isControl) {
			return nil, fault.New(fault.Validation, "invalid value of a header")
		}
		all[name] = value
	}
	return all, nil
}

// notInToken reports whether the name of a header cannot contain a character.
func notInToken(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c))
}

// isControl reports whether the value of a header cannot contain a character.
func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
