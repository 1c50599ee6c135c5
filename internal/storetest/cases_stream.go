package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

var streamCases = []Case{
	{"stream: any version creates the stream at 0", func(e *env) {
		e.equal("last", e.appended("s", stream.Any, "a"), 0)
		e.equal("names", e.names("s"), []string{"a"})
	}},
	{"stream: any version goes on where the stream is", func(e *env) {
		e.appended("s", stream.Any, "a", "b")
		e.equal("last", e.appended("s", stream.Any, "c"), 2)
		e.equal("names", e.names("s"), []string{"a", "b", "c"})
	}},
	{"stream: none creates", func(e *env) {
		e.equal("last", e.appended("s", stream.None, "a"), 0)
	}},
	{"stream: none refuses one that exists, and tells its head", func(e *env) {
		e.appended("s", stream.Any, "a", "b", "c")
		last, err := e.append(e.hf, "s", stream.None, "x")
		e.moved(err, -1, 2)
		e.equal("last", last, 2)
		e.equal("names", e.names("s"), []string{"a", "b", "c"})
	}},
	{"stream: the exact version wins", func(e *env) {
		e.appended("s", stream.Any, "a", "b")
		e.equal("last", e.appended("s", 1, "c", "d"), 3)
	}},
	{"stream: a version behind the head is refused", func(e *env) {
		e.appended("s", stream.Any, "a", "b")
		_, err := e.append(e.hf, "s", 0, "x")
		e.moved(err, 0, 1)
		e.equal("names", e.names("s"), []string{"a", "b"})
	}},
	{"stream: a version ahead of the head is refused", func(e *env) {
		e.appended("s", stream.Any, "a")
		_, err := e.append(e.hf, "s", 7, "x")
		e.moved(err, 7, 0)
	}},
	{"stream: a version of a stream that does not exist is refused, and makes none", func(e *env) {
		_, err := e.append(e.hf, "s", 0, "x")
		e.moved(err, 0, -1)
		e.equal("names", e.names("s"), []string{})
		e.equal("last", e.appended("s", stream.None, "a"), 0)
	}},
	{"stream: several events of one append have consecutive versions, in order", func(e *env) {
		e.appended("s", stream.Any, "a")
		e.equal("last", e.appended("s", 0, "b", "c", "d"), 3)
		e.equal("names", e.names("s"), []string{"a", "b", "c", "d"})
	}},
	{"stream: a refused append of several writes none of them", func(e *env) {
		e.appended("s", stream.Any, "a")
		_, err := e.append(e.hf, "s", 5, "x", "y", "z")
		e.moved(err, 5, 0)
		e.equal("names", e.names("s"), []string{"a"})
	}},
	{"stream: one bad event of an append refuses all of them", func(e *env) {
		_, err := stream.Append(e.ctx, e.hf, "s", stream.Any, stream.Event{Name: "a"}, stream.Event{Name: "b", Data: []byte(`{`)})
		e.refused(err, fault.Validation)
		e.equal("names", e.names("s"), []string{})
	}},
	{"stream: data comes back byte for byte", func(e *env) {
		for i, data := range []string{
			`{"b": 1,   "a":2}`, `{"n": 9007199254740993, "x": 1.50, "e": 1e2}`,
			`{"t": "żółć 🦀 \u00e9 \" \\ ' $1 ?1 {now}"}`, `[1,2,3]`, `"text"`, `null`, `0`, `{}`,
		} {
			_, err := stream.Append(e.ctx, e.hf, "s", stream.Version(i-1), stream.Event{Name: "n", Data: []byte(data)})
			e.ok(err)
			got, err := testkit.First(1, stream.ReadBackward(e.ctx, e.hf, "s", -1))
			e.ok(err)
			e.equal("data", string(got[0].Data), data)
		}
	}},
	{"stream: an event without data has an empty object", func(e *env) {
		e.appended("s", stream.Any, "a")
		got, err := testkit.First(1, stream.Read(e.ctx, e.hf, "s", 0))
		e.ok(err)
		e.equal("data", string(got[0].Data), "{}")
	}},
	{"stream: the origin of an event comes back, and stays empty where it was", func(e *env) {
		_, err := stream.Append(e.ctx, e.hf, "s", stream.Any,
			stream.Event{Name: "a", Correlation: "c-1", Causation: "e-7", Actor: "admin"}, stream.Event{Name: "b"})
		e.ok(err)
		got, err := holdfast.Collect(stream.Read(e.ctx, e.hf, "s", 0))
		e.ok(err)
		e.equal("origin", got[0].Correlation+got[0].Causation+got[0].Actor, "c-1e-7admin")
		e.equal("no origin", got[1].Correlation+got[1].Causation+got[1].Actor, "")
	}},
	{"stream: the same correlation twice is two events", func(e *env) {
		for range 2 {
			_, err := stream.Append(e.ctx, e.hf, "s", stream.Any, stream.Event{Name: "a", Correlation: "c"})
			e.ok(err)
		}
		e.equal("names", e.names("s"), []string{"a", "a"})
	}},
	{"stream: the history of Holdfast cannot be appended to", func(e *env) {
		e.created("i", "open")
		for _, name := range []string{"$entity/invoice/i", "$", "$new"} {
			_, err := e.append(e.hf, name, stream.Any, "forged")
			e.refused(err, fault.Forbidden)
			e.equal("nothing forged", slices.Contains(e.names(name), "forged"), false)
		}
	}},
	{"stream: names that cannot be kept are refused", func(e *env) {
		for _, name := range []string{"", "a\x00b", "a\nb", "\xff", strings.Repeat("x", 256)} {
			_, err := e.append(e.hf, name, stream.Any, "a")
			e.refused(err, fault.Validation)
			_, err = e.append(e.hf, "s", stream.Any, name)
			e.refused(err, fault.Validation)
		}
		e.equal("names", e.names("s"), []string{})
	}},
	{"stream: names of any script and 255 characters are kept", func(e *env) {
		for _, name := range []string{strings.Repeat("ż", 255), "a/b c%_'\"\\;--", "счёт-7", "🦀"} {
			e.appended(name, stream.None, name)
			e.equal("names", e.names(name), []string{name})
		}
	}},
	{"stream: names differ by case and by trailing space", func(e *env) {
		for _, name := range []string{"A", "a", "a ", "a%", "a_"} {
			e.appended(name, stream.None, "n"+name)
		}
		for _, name := range []string{"A", "a", "a ", "a%", "a_"} {
			e.equal(name, e.names(name), []string{"n" + name})
		}
	}},
	{"stream: data that is not one document is refused, and nothing is written", func(e *env) {
		for _, data := range []string{``, `{`, `{} {}`, `{"a":1,"a":2}`, `{"a":"\u0000"}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{"a":1e400}`, `nul`} {
			_, err := stream.Append(e.ctx, e.hf, "s", stream.Any, stream.Event{Name: "a", Data: []byte(data)})
			e.refused(err, fault.Validation)
		}
		e.equal("names", e.names("s"), []string{})
	}},
	{"stream: data over a megabyte is refused, just under it is kept", func(e *env) {
		big := append(append([]byte(`"`), bytes.Repeat([]byte("x"), 1<<20-2)...), '"')
		_, err := stream.Append(e.ctx, e.hf, "s", stream.Any, stream.Event{Name: "a", Data: big})
		e.ok(err)
		_, err = stream.Append(e.ctx, e.hf, "s", stream.Any, stream.Event{Name: "b", Data: append(big, ' ')})
		e.refused(err, fault.PayloadTooLarge)
		e.equal("names", e.names("s"), []string{"a"})
	}},
	{"stream: an append has at least one event and a thousand at the most", func(e *env) {
		_, err := e.append(e.hf, "s", stream.Any)
		e.refused(err, fault.Validation)
		_, err = e.append(e.hf, "s", stream.Any, slices.Repeat([]string{"a"}, 1001)...)
		e.refused(err, fault.Validation)
		e.equal("last", e.appended("s", stream.None, slices.Repeat([]string{"a"}, 1000)...), 999)
		e.equal("events", len(e.names("s")), 1000)
	}},
	{"stream: an expected version below -1 is refused", func(e *env) {
		_, err := e.append(e.hf, "s", -3, "a")
		e.refused(err, fault.Validation)
	}},
	{"stream: read begins where it is told and ends at the limit", func(e *env) {
		e.appended("s", stream.Any, "a", "b", "c", "d")
		for _, r := range []struct {
			from  stream.Version
			limit int
			want  string
		}{{0, 0, "abcd"}, {1, 2, "bc"}, {3, 9, "d"}, {4, 1, ""}, {-5, 2, "ab"}, {0, -1, "abcd"}} {
			got, err := testkit.First(r.limit, stream.Read(e.ctx, e.hf, "s", r.from))
			e.ok(err)
			e.equal("read", joined(got), r.want)
		}
	}},
	{"stream: read backward begins at the end or where it is told", func(e *env) {
		e.appended("s", stream.Any, "a", "b", "c", "d")
		for _, r := range []struct {
			from  stream.Version
			limit int
			want  string
		}{{-1, 0, "dcba"}, {-1, 1, "d"}, {2, 2, "cb"}, {0, 5, "a"}, {99, 1, "d"}} {
			got, err := testkit.First(r.limit, stream.ReadBackward(e.ctx, e.hf, "s", r.from))
			e.ok(err)
			e.equal("read", joined(got), r.want)
		}
	}},
	{"stream: reads span pages in both directions", func(e *env) {
		const n = 1500 // more than a page forward, and several backward
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%04d.", i)
		}
		for some := range slices.Chunk(names, 500) {
			e.appended("s", stream.Any, some...)
		}
		got, err := holdfast.Collect(stream.Read(e.ctx, e.hf, "s", 0))
		e.ok(err)
		e.equal("forward", joined(got), strings.Join(names, ""))
		slices.Reverse(names)
		got, err = holdfast.Collect(stream.ReadBackward(e.ctx, e.hf, "s", -1))
		e.ok(err)
		e.equal("backward", joined(got), strings.Join(names, ""))
		got, err = holdfast.Collect(stream.ReadBackward(e.ctx, e.hf, "s", 15)) // exactly the first page
		e.ok(err)
		e.equal("backward from 15", joined(got), strings.Join(names[n-16:], ""))
	}},
	{"stream: one that does not exist has no events", func(e *env) {
		got, err := holdfast.Collect(stream.Read(e.ctx, e.hf, "nothing", 0))
		e.ok(err)
		e.equal("events", len(got), 0)
	}},
	{"stream: times are the database's and do not go back", func(e *env) {
		for range 5 {
			e.appended("s", stream.Any, "a", "b")
		}
		got, err := holdfast.Collect(stream.Read(e.ctx, e.hf, "s", 0))
		e.ok(err)
		for i := 1; i < len(got); i++ {
			if got[i].At.IsZero() || got[i].At.Before(got[i-1].At) {
				e.Errorf("event %d has time %s, after one with %s", i, got[i].At, got[i-1].At)
			}
		}
		status, err := e.hf.Status(e.ctx)
		e.ok(err)
		if status.Now.Before(got[len(got)-1].At) {
			e.Errorf("database time is %s, before the event at %s", status.Now, got[len(got)-1].At)
		}
	}},
	{"stream: 16 racing creates, one wins, the others are told its head", func(e *env) {
		for round := range 10 {
			name := fmt.Sprintf("s-%d", round)
			won, lost := holdfasttest.Race(e.T, 16, func(i int) error {
				_, err := e.append(e.hf, name, stream.None, words(i))
				return err
			})
			e.equal("won", won, 1)
			for _, err := range lost {
				e.moved(err, -1, 0)
			}
			e.equal("events", len(e.names(name)), 1)
		}
	}},
	{"stream: 16 racing writers of one version, one wins each time", func(e *env) {
		e.appended("s", stream.None, "first")
		for head := range int64(10) {
			won, lost := holdfasttest.Race(e.T, 16, func(int) error {
				_, err := e.append(e.hf, "s", stream.Version(head), "next")
				return err
			})
			e.equal("won", won, 1)
			for _, err := range lost {
				e.moved(err, head, head+1)
			}
		}
		e.equal("events", len(e.names("s")), 11)
	}},
	{"stream: racing writers that take any version leave no gap", func(e *env) {
		won, _ := holdfasttest.Race(e.T, 16, func(i int) error {
			for n := range 10 {
				if _, err := e.append(e.hf, "s", stream.Any, fmt.Sprintf("%d-%d", i, n), "second"); err != nil {
					return err
				}
			}
			return nil
		})
		e.equal("won", won, 16)
		names := e.names("s") // checks the versions
		e.equal("events", len(names), 320)
		for i := 0; i < len(names); i += 2 {
			e.equal("the events of one append stand together", names[i+1], "second")
		}
	}},
}

func joined(all []stream.Event) string {
	var b strings.Builder
	for _, ev := range all {
		b.WriteString(ev.Name)
	}
	return b.String()
}
