package store

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

type origin struct {
	Actor string `arg:"actor,null"`
}

type fieldArgs struct {
	name    string        `arg:"name"`
	note    []byte        `arg:"note,null"`
	size    int           `arg:"size"`
	pause   time.Duration `arg:"pause"`
	done    bool          `arg:"done"`
	want    *int64        `arg:"want"`
	List    []string      `arg:"list"`
	ignored string
	origin
}

var (
	byFields = VerbOf[fieldArgs](Decl{Name: "test.fields", Lane: Read}, nil, CountRows)
	byHand   = NewVerb(Decl{Name: "test.hand", Lane: Read}, nil, func(a fieldArgs, args *Args) {
		args.Text("name", a.name)
		args.MaybeText("note", string(a.note))
		args.Int("size", int64(a.size))
		args.Int("pause", a.pause.Milliseconds())
		args.Int("done", Bit(a.done))
		args.MaybeInt("want", a.want)
		args.Text("list", JSON(a.List))
		args.MaybeText("actor", a.Actor)
	}, CountRows)
)

func bound(v *Verb[fieldArgs, int], a fieldArgs) *Args {
	var args Args
	v.call(Partition{}, a).command.Bind(&args)
	return &args
}

// TestTheFieldsOfAStructAreArguments compares the binding by tags with a handwritten binder.
func TestTheFieldsOfAStructAreArguments(t *testing.T) {
	if got, want := ColumnsOf("test.fields"), ColumnsOf("test.hand"); !reflect.DeepEqual(got, want) {
		t.Errorf("got columns %v, want %v", got, want)
	}
	full := fieldArgs{"n", []byte("b"), 7, 1500 * time.Millisecond, true, new(int64(9)), []string{"x", "y"}, "i", origin{"me"}}
	for _, a := range []fieldArgs{{}, full} {
		if got, want := bound(byFields, a).Values(0), bound(byHand, a).Values(0); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v is bound as %v, want %v", a, got, want)
		}
		fields, hand := testing.AllocsPerRun(100, func() { bound(byFields, a) }), testing.AllocsPerRun(100, func() { bound(byHand, a) })
		if fields > hand {
			t.Errorf("got %v allocations, manual binding has %v", fields, hand)
		}
	}
	if want := []any{int64(0), "", "n", "b", int64(7), int64(1500), int64(1), int64(9), `["x","y"]`, "me"}; !reflect.DeepEqual(bound(byFields, full).Values(0), want) {
		t.Errorf("bound as %v", bound(byFields, full).Values(0))
	}
}

func TestAFieldThatCannotBeAnArgument(t *testing.T) {
	for name, declare := range map[string]func(){
		"a number that is not whole": func() {
			VerbOf[struct {
				size float64 `arg:"size,null"`
			}](Decl{Name: "test.float"}, nil, CountRows)
		},
		"a pointer to a duration": func() {
			VerbOf[struct {
				ttl *time.Duration `arg:"ttl"`
			}](Decl{Name: "test.pointer"}, nil, CountRows)
		},
		"a time": func() {
			VerbOf[struct {
				at time.Time `arg:"at"`
			}](Decl{Name: "test.time"}, nil, CountRows)
		},
		"an option that there is not": func() {
			VerbOf[struct {
				name string `arg:"name,nil"`
			}](Decl{Name: "test.option"}, nil, CountRows)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was bound", name)
				}
			}()
			declare()
		}()
	}
}

type oneRow struct{ values []any }

func (oneRow) Applied() bool { return true }

func (r oneRow) Scan(dest ...any) error {
	for i, d := range dest {
		reflect.ValueOf(d).Elem().Set(reflect.ValueOf(r.values[i]))
	}
	return nil
}

func TestScanners(t *testing.T) {
	type pair struct {
		Applied bool
		A       string
		B       int64
	}
	row := oneRow{[]any{"a", int64(2)}}
	var all []pair
	each := Each(func(p *pair) []any { return []any{&p.A, &p.B} })
	var one pair
	outcome := Outcome(func(p *pair) (*bool, []any) { return &p.Applied, []any{&p.A, &p.B} })
	var texts []string
	for range 2 {
		if err := errors.Join(each(&all, row), outcome(&one, row), ScanValues(&texts, row)); err != nil {
			t.Fatal(err)
		}
	}
	if want := (pair{false, "a", 2}); len(all) != 2 || all[0] != want || all[1] != want {
		t.Errorf("got %v", all)
	}
	if want := (pair{true, "a", 2}); one != want {
		t.Errorf("got %v", one)
	}
	if len(texts) != 2 || texts[1] != "a" {
		t.Errorf("got %v", texts)
	}
}
