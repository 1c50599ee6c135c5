package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/wire"
)

// pageIn returns the elements of an answer that is a page of a list.
func pageIn(answer any) (items reflect.Value, next *string, ok bool) {
	v := reflect.ValueOf(answer)
	if t := v.Type(); t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[wire.List[int]]().PkgPath() || !strings.HasPrefix(t.Name(), "List[") {
		return items, nil, false
	}
	return v.FieldByName("Items"), v.FieldByName("Next").Interface().(*string), true
}

// writePage writes a page element by element, so that there is never a second copy of all of it.
func writePage(w http.ResponseWriter, r *http.Request, status int, items reflect.Value, next *string) {
	out := &answer{w: w, status: status, head: r.Method == http.MethodHead}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	write := func(before string, doc any) {
		text.Reset()
		text.WriteString(before)
		if err := enc.Encode(doc); err != nil { // a document of ours that JSON cannot say
			panic(err)
		}
		out.write(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	}
	before := `{"items":[`
	for i := range items.Len() {
		write(before, items.Index(i).Interface())
		before = ","
	}
	if items.Len() == 0 {
		out.write([]byte(before))
	}
	write(`],"next":`, next)
	out.write([]byte("}\n"))
	out.end()
}

// answer is the body of an answer. A small one has a Content-Length; a large one is sent as it comes.
type answer struct {
	w      http.ResponseWriter
	status int
	head   bool // the caller wants the headers alone
	size   int
	held   []byte // until it is known to be large
	begun  bool
}

// smallAnswer is how large an answer with a Content-Length is.
const smallAnswer = 64 << 10

func (a *answer) write(text []byte) {
	a.size += len(text)
	if a.head {
		return
	}
	if !a.begun && a.size <= smallAnswer {
		a.held = append(a.held, text...)
		return
	}
	if !a.begun {
		a.begun = true
		begin(a.w, a.status, "application/json")
		_, _ = a.w.Write(a.held) // the client went away: nobody is left to be told
	}
	_, _ = a.w.Write(text)
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
