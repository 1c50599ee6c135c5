package wire

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
)

// TestProblem verifies that the fields of a code are members of the document and are read back,
// that the wrapped cause is not exposed, and that an error without a code exposes nothing.
func TestProblem(t *testing.T) {
	err := fault.New(fault.Concurrency, "moved").With("lastVersion", 4).With("status", "mine").With("detail", "no").Wrap(io.ErrUnexpectedEOF)
	raw, failed := json.Marshal(ProblemOf(err, 409, "id"))
	if failed != nil {
		t.Fatal(failed)
	}
	var told map[string]any
	var p Problem
	if err := errors.Join(json.Unmarshal(raw, &told), json.Unmarshal(raw, &p)); err != nil {
		t.Fatal(err)
	}
	if told["lastVersion"] != 4.0 || told["status"] != 409.0 || told["detail"] != "moved" || told["entityStatus"] != "mine" || strings.Contains(string(raw), "EOF") {
		t.Errorf("got %s", raw)
	}
	back := p.Fault()
	if back.Code != fault.Concurrency || back.Message != "moved" || back.Fields["lastVersion"] != 4.0 || back.Fields["status"] != "mine" || back.Fields["requestId"] != "id" {
		t.Errorf("decoded as %+v", back)
	}
	hidden := ProblemOf(io.ErrUnexpectedEOF, 500, "id")
	if hidden.Code != fault.Internal || strings.Contains(hidden.Detail, "EOF") {
		t.Errorf("got %+v", hidden)
	}
}
