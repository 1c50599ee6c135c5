// Package secretref parses references to named secrets, and keeps the values of secrets out of what is stored and out of calls to
// other hosts. It does not access the database.
//
// A reference stands for the value of a secret: secret:NAME where a value is a secret as a whole, and ${secret:NAME} inside of a
// header.
package secretref

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

const (
	prefix = "secret:"
	open   = "${" + prefix
)

const nameForm = `[A-Za-z0-9][A-Za-z0-9._-]{0,99}`

var (
	validName = regexp.MustCompile(`^` + nameForm + `$`)
	reference = regexp.MustCompile(`\$\{secret:(` + nameForm + `)\}`)
)

// CheckName refuses a name that a secret must not have.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fault.New(fault.Validation, "a secret's name must have 1 to 100 letters, digits, dots, dashes and underscores and begin with a letter or digit, got %.200q", name)
	}
	return nil
}

// Whole returns the name in a text that is secret:NAME.
func Whole(text string) (name string, ok bool) {
	name, ok = strings.CutPrefix(text, prefix)
	return name, ok && validName.MatchString(name)
}

// IsWhole reports whether a text begins like secret:NAME, whatever the name.
func IsWhole(text string) bool { return strings.HasPrefix(text, prefix) }

// In reports whether a text contains the beginning of a reference ${secret:NAME}.
func In(text string) bool { return strings.Contains(text, open) }

// Names returns the names that the references in a text have. A malformed reference is an error.
func Names(text string) (names []string, err error) {
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	if len(names) != strings.Count(text, open) {
		return nil, fault.New(fault.Validation, "a reference to a secret must be ${secret:NAME}: correct it")
	}
	return names, nil
}

// Expand replaces the references in a text.
func Expand(text string, value func(name string) string) string {
	return reference.ReplaceAllStringFunc(text, func(all string) string { return value(all[len(open) : len(all)-1]) })
}

// Limits.
const (
	MinValue   = 8
	MaxValue   = 4096
	maxHeaders = 20
	maxHeader  = 2048
)

// CheckValue refuses a value that cannot be sent in a header, or that is so short that it occurs in other texts by chance. The
// error does not contain the value.
func CheckValue(value string) error {
	if len(value) < MinValue || len(value) > MaxValue {
		return fault.New(fault.Validation, "a secret must have %d to %d characters, got %d", MinValue, MaxValue, len(value)).With("pointer", "/value")
	}
	if !plain(value) {
		return fault.New(fault.Validation, "a secret must be printable ASCII without line breaks, and must not begin or end with a space: encode it, for example with base64").With("pointer", "/value")
	}
	return nil
}

// CanSign reports whether a value can sign calls: whsec_ followed by 24 to 64 bytes in base64.
func CanSign(value string) bool {
	text, ok := strings.CutPrefix(value, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	return ok && err == nil && len(key) >= 24 && len(key) <= 64
}

// plain reports whether a text can be the value of a header.
func plain(text string) bool {
	return strings.TrimSpace(text) == text && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")

// reserved are the headers that the sender or the connection sets.
var reserved = map[string]bool{"Content-Type": true, "Content-Length": true, "Content-Encoding": true, "Host": true, "Idempotency-Key": true, "User-Agent": true, "Transfer-Encoding": true,
	"Connection": true, "Keep-Alive": true, "Te": true, "Trailer": true, "Upgrade": true, "Expect": true, "Accept-Encoding": true, "Proxy-Connection": true}

// Reserved reports whether the sender or the connection sets a header, so that it must not have a secret.
func Reserved(header string) bool { return reserved[textproto.CanonicalMIMEHeaderKey(header)] }

// Origin returns the scheme and the host of a URL to which a secret may be sent. The URL must be absolute, and must have neither a
// user nor a segment '..' in its path, with which a part of it could lead elsewhere.
func Origin(text string) (origin string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
		return "", false
	}
	segments := strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' || r == '\\' })
	return u.Scheme + "://" + u.Host, !slices.Contains(segments, "..")
}

// Credential reports whether the value of a header is always a credential.
func Credential(header string) bool {
	return slices.Contains([]string{"Authorization", "Proxy-Authorization", "Cookie"}, textproto.CanonicalMIMEHeaderKey(header))
}

// CheckHeaders checks the headers of a handler or a webhook, and returns them with canonical names.
func CheckHeaders(headers map[string]string) (map[string]string, error) {
	if len(headers) > maxHeaders {
		return nil, fault.New(fault.Validation, "at most %d headers may be set, got %d", maxHeaders, len(headers)).With("pointer", "/headers")
	}
	out := make(map[string]string, len(headers))
	for _, given := range slices.Sorted(maps.Keys(headers)) {
		name, text := textproto.CanonicalMIMEHeaderKey(given), headers[given]
		refuse := func(format string, args ...any) (map[string]string, error) {
			return nil, fault.New(fault.Validation, format, args...).With("pointer", "/headers/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(given))
		}
		names, err := Names(text)
		_, twice := out[name]
		switch {
		case !headerName.MatchString(given):
			return refuse("%.200q is not a valid header name: correct it", given)
		case reserved[name] || strings.HasPrefix(name, "Webhook-"):
			return refuse("the header %s is set by Holdfast: remove it", name)
		case twice:
			return refuse("the header %s is set twice: remove one of them", name)
		case err != nil:
			return refuse("the header %s has an invalid reference: write ${secret:NAME}", name)
		case IsWhole(text):
			return refuse("the header %s would be sent as it is: write the reference as ${%s}", name, text)
		case text == "" || len(text) > maxHeader || !plain(text):
			return refuse("the header %s must have 1 to %d printable ASCII characters, and must not begin or end with a space", name, maxHeader)
		case len(names) == 0 && Credential(name):
			return refuse("the header %s would be readable by every API key: store its value with PUT secrets/NAME, and write ${secret:NAME}", name)
		}
		out[name] = text
	}
	return out, nil
}

// Encode returns the stored form of headers.
func Encode(headers map[string]string) (string, error) {
	if len(headers) == 0 {
		return "{}", nil
	}
	text, err := json.Marshal(headers)
	return string(text), err
}

// NamesIn returns the names that the references in headers and in a signing secret have, sorted and without duplicates.
func NamesIn(headers map[string]string, signing string) (all []string) {
	for _, text := range headers {
		names, _ := Names(text) // checked before
		all = append(all, names...)
	}
	if name, ok := Whole(signing); ok {
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
