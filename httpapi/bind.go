package httpapi

import (
	"bytes"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/wire"
)

// span converts milliseconds. It clamps values that a [time.Duration] cannot represent, so that
// they are rejected as too long instead of overflowing.
func span(m wire.Millis) time.Duration {
	const most = wire.Millis(math.MaxInt64 / int64(time.Millisecond))
	return min(max(m, -most), most).Duration()
}

const (
	maxBody = strictjson.MaxBytes
)

// readBody reads the complete body.
func (c *call) readBody() error {
	r := c.r
	if r.Header.Get("Content-Encoding") != "" {
		return fault.New(fault.UnsupportedMediaType, "Content-Encoding %.80q is not supported: send the body unencoded", r.Header.Get("Content-Encoding"))
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	body, err := c.bytes(http.MaxBytesReader(c.w, r.Body, maxBody))
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return f
		}
		if _, over := err.(*http.MaxBytesError); over {
			return tooLarge()
		}
		return fault.New(fault.Validation, "the body could not be read completely: send the request again").Wrap(err)
	}
	c.body = body
	if len(body) == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	switch {
	case err != nil, charset != "" && charset != "utf-8":
	case kind == "application/json", c.route.Merges && kind == table.MergePatch:
		return nil
	case c.route.In.YAML() && (kind == "application/yaml" || kind == "application/x-yaml" || kind == "text/yaml"):
		c.yaml = true
		return nil
	}
	if c.route.Merges {
		return fault.New(fault.UnsupportedMediaType, "Content-Type must be %s or application/json, got %.80q", table.MergePatch, r.Header.Get("Content-Type"))
	}
	if c.route.In.YAML() {
		return fault.New(fault.UnsupportedMediaType, "Content-Type must be application/json or application/yaml, got %.80q", r.Header.Get("Content-Type"))
	}
	return fault.New(fault.UnsupportedMediaType, "Content-Type must be application/json, got %.80q", r.Header.Get("Content-Type"))
}

// bytes reads a body. A large one waits for room for itself and for the memory of parsing it.
func (c *call) bytes(r io.Reader) ([]byte, error) {
	size := c.r.ContentLength
	if size < 0 {
		size = maxBody // the maximum
	}
	small, weight := room.SmallBytes, room.BodyWeight
	if c.route.In.YAML() {
		small, weight = room.SmallBytes*room.BodyWeight/room.TreeWeight, room.TreeWeight
	}
	begun, err := io.ReadAll(io.LimitReader(r, int64(small)))
	if err != nil || len(begun) < small || int(size) <= small {
		return begun, err
	}
	if err := c.share.Wait(c.ctx(), weight*int(size)); err != nil {
		return nil, err
	}
	// While the body is read, a client that stalls is disconnected if other requests wait for room.
	c.share.Active()
	defer c.share.StopWatching()
	body := bytes.NewBuffer(make([]byte, 0, int(size)+bytes.MinRead))
	body.Write(begun)
	_, err = body.ReadFrom(c.share.Reader(r))
	return body.Bytes(), err
}

func tooLarge() *fault.Error {
	return fault.New(fault.PayloadTooLarge, "the body must not exceed %d bytes", maxBody)
}
