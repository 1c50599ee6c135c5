package store

import (
	"strings"
	"testing"
	"testing/fstest"
)

type listed struct {
	name  string
	rows  []int64
	extra bool // makes the binder bind a different column
}

var listVerb = NewVerb(Decl{Name: "test.list"}, nil,
	func(l listed, a *Args) {
		a.Text("name", l.name)
		if l.extra {
			a.Text("other", l.name)
		} else {
			a.Text("size", l.name)
		}
		Rows(a, l.rows, func(n int, row int64, a *Args) { a.Int("row", row) })
	},
	func(*int, Row) error { return nil }).Emits(func(listed) Emission { return Emission{} })

// Verifies that the columns of a verb are known before its first call: the common ones, its own, and those of
// child rows.
func TestTheColumnsOfAVerbAreKnown(t *testing.T) {
	cols := ColumnsOf(listVerb.decl.Name)
	var names []string
	for _, c := range append(cols.Members, cols.Children...) {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "shard workspace command name size revision marks row" || !cols.Emits {
		t.Errorf("got columns %s", got)
	}
	if kinds := []Kind{cols.Members[0].Kind, cols.Members[2].Kind, cols.Members[3].Kind, cols.Children[0].Kind}; kinds[0] != ShardKind || kinds[1] != IDKind || kinds[2] != TextKind || kinds[3] != IntKind {
		t.Errorf("got kinds %v", kinds)
	}
}

// Verifies that a member that binds a column by a different name than its verb is detected.
func TestAMemberBindsTheColumnsOfItsVerb(t *testing.T) {
	var args Args
	command := func(l listed) Command { return listVerb.Command(Partition{}, l) }
	command(listed{rows: []int64{7, 8}}).Bind(&args)
	if got := args.Children(0); len(got) != 2 || got[1][0] != int64(8) {
		t.Errorf("got child rows %v", got)
	}
	for name, into := range map[string]*Args{"the first": new(Args), "the second": &args} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s member was bound to another column", name)
				}
			}()
			command(listed{extra: true}).Bind(into)
		}()
	}
}

func TestNamesThatNoVerbMayBind(t *testing.T) {
	for _, name := range []string{"", "shard", "marks", "member", "now", "Upper", "did1"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a verb was bound with %q", name)
				}
			}()
			NewVerb(Decl{Name: "test.refused"}, nil, func(_ int, a *Args) { a.Int(name, 1) }, func(*int, Row) error { return nil })
		}()
	}
}

// number is a dialect for the tests: an argument is #n.
func number(_ Decl, cols Columns, _ bool) Filling {
	f := Filling{Arguments: map[string]string{}, Tokens: map[string]string{"{children}": "children AS c(row)"}}
	for i, c := range cols.Members {
		f.Arguments[c.Name] = "#" + string(rune('1'+i))
	}
	return f
}

func fillIn(files SQLFiles) (string, error) {
	texts, err := files.Texts([]Decl{listVerb.decl}, number)
	return texts["test.list"], err
}

func TestArgumentsAreWrittenByTheirNames(t *testing.T) {
	const rest = " :size {children} c.row"
	for text, want := range map[string]string{
		"a = :name":                      "a = #4",
		":name::jsonb -> :name":          "#4::jsonb -> #4",
		"a::name":                        "a::name",
		"':name' || :name":               "':name' || #4",
		`"a:name" = :name`:               `"a:name" = #4`,
		"-- :nobody's\n:name":            "-- :nobody's\n#4",
		"/* :nobody */ :name":            "/* :nobody */ #4",
		"'it''s :nobody' = :name":        "'it''s :nobody' = #4",
		":name ? 'x' AND '$entity/' = y": "#4 ? 'x' AND '$entity/' = y",
		":did1 = :name":                  ":did1 = #4",
	} {
		if !strings.Contains(text, ":name") {
			t.Fatal(text)
		}
		got, err := fillIn(SQLFiles{"test.list": "/* */ " + text + rest, "test.list.fast": ":name"})
		if err != nil || !strings.Contains(got, want) || !strings.HasSuffix(got, "#5 children AS c(row) c.row") {
			t.Errorf("%s became %s, error %v", text, got, err)
		}
	}
}

// Verifies that unknown, unused and positional arguments are refused, all in one error that names the file and
// the argument.
func TestArgumentsThatAreRefused(t *testing.T) {
	for text, want := range map[string][]string{
		":nobody :name :size {children} c.row": {"test.list.sql", ":nobody"},
		":size {children} c.row":               {"test.list.sql", ":name"},
		":size :name {children}":               {"test.list.sql", ":row"},
		":nobody $1":                           {":nobody", "$1", ":name", ":size", ":row"},
		":name :size c.row ?12 {children}":     {"?1"},
		"{include test/none} :name :size":      {"test.none.fragment.sql"},
		"{include test/loop}":                  {"include each other"},
		"{include test/two x}":                 {"{2}"},
	} {
		_, err := fillIn(SQLFiles{"test.list": text, "test.loop.fragment": "{include test/loop}", "test.two.fragment": "{1} {2}"})
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got error %v", text, err)
			}
		}
	}
	for _, files := range []SQLFiles{
		{"test.list": ":size {children} c.row", "test.list.fast": ":name"},
		{"test.list": "-- unused: name, row\n:size"},
	} {
		if _, err := fillIn(files); err != nil {
			t.Error(err)
		}
	}
}

func TestFragmentsAreIncluded(t *testing.T) {
	files := make(SQLFiles)
	err := files.Add(fstest.MapFS{
		"sql/test/list.sql":           {Data: []byte("-- unused: size, row\nSELECT {include test/cols x; {now}}\n  {all has_work}\n")},
		"sql/test/cols.fragment.sql":  {Data: []byte("-- What it is.\n{1}.a,\n{2}, :name\n")},
		"sql/a/has_work.sql":          {Data: []byte("one\n")},
		"sql/b/has_work.sql":          {Data: []byte("two\n")},
		"sql/b/homework.fragment.sql": {Data: []byte("three\n")}, // not a has_work file
	}, "sql")
	if err != nil {
		t.Fatal(err)
	}
	got, err := fillIn(files)
	if want := "-- unused: size, row\nSELECT x.a,\n       {now}, #4\n  one\n  two\n"; err != nil || got != want {
		t.Errorf("got text %q, error %v", got, err)
	}
}
