package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/wire"
)

// pageIn returns the elements of a response that is a page of a list, which is a [wire.List] of any type.
func pageIn(response any) (items reflect.Value, next *string, ok bool) {
	v := reflect.ValueOf(response)
	if t := v.Type(); t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[wire.List[int]]().PkgPath() || !strings.HasPrefix(t.Name(), "List[") {
		return items, nil, false
	}
	return v.FieldByName("Items"), v.FieldByName("Next").Interface().(*string), true
}

// writePage writes a page element by element, so that there is never a second copy of it in memory.
// As it writes, it reduces the share of the request to what the remaining elements need.
func (c *call) writePage(items reflect.Value, next *string) {
	out := &answer{w: c.share.Writer(c.w), status: c.status, head: c.r.Method == http.MethodHead}
	enc := json.NewEncoder(element{out})
	enc.SetEscapeHTML(false)
	write := func(before string, doc any) {
		out.text(before)
		if err := enc.Encode(doc); err != nil { // impossible for our own types
			panic(err)
		}
	}
	read := 0 // bytes that were read for the page; without a budget it is 0, and the share stays as it is
	if c.budget != nil {
		read = c.budget.Used()
	}
	margin := min(read, room.PageMargin)
	before := `{"items":[`
	for i := 0; i < items.Len() && out.failed == nil; i++ {
		if read > 0 { // the elements that were written are estimated to take as much memory as their JSON
			c.share.Shrink(max(read-out.size, 0) + margin)
		}
		write(before, items.Index(i).Interface())
		items.Index(i).SetZero() // so that its memory can be freed
		before = ","
	}
	if items.Len() == 0 {
		out.text(before)
	}
	write(`],"next":`, next)
	out.text("}\n")
	out.end()
}

// answer is the body of a response. A body of at most smallAnswer bytes is buffered and gets a
// Content-Length; a larger one is streamed without. The body of a HEAD is only counted, and gets a
// Content-Length at any size.
type answer struct {
	w      http.ResponseWriter
	status int
	head   bool // the request is a HEAD
	size   int
	held   []byte // the body, while it is buffered
	begun  bool
	failed error
}

// smallAnswer is the maximum size of a body that is buffered.
const smallAnswer = 64 << 10

// element is the answer as a writer for an encoder, which ends each value with a newline.
type element struct{ *answer }

func (e element) Write(text []byte) (int, error) {
	e.write(bytes.TrimSuffix(text, []byte("\n")))
	return len(text), nil // a failed write means that the client has disconnected
}

func (a *answer) text(s string) { a.write([]byte(s)) }

func (a *answer) write(text []byte) {
	a.size += len(text)
	if a.head || a.failed != nil {
		return
	}
	if !a.begun && a.size <= smallAnswer {
		a.held = append(a.held, text...)
		return
	}
	if !a.begun {
		a.begun = true
		begin(a.w, a.status, "application/json")
		_, a.failed = a.w.Write(a.held)
		a.held = nil
	}
	if a.failed == nil {
		_, a.failed = a.w.Write(text)
	}
}

func (a *answer) end() {
	if a.begun {
		return
	}
	a.w.Header().Set("Content-Length", strconv.Itoa(a.size))
	begin(a.w, a.status, "application/json")
	if !a.head {
		_, _ = a.w.Write(a.held)
	}
}
