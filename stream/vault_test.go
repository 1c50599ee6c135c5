package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

func newVault(t *testing.T, seed string) *stream.Vault {
	t.Helper()
	v, err := stream.NewVault([]byte(strings.Repeat(seed, 32)[:32]))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func about(subject, name, data string) stream.Event {
	return stream.Event{Name: name, Subject: subject, Data: []byte(data)}
}

func mustSeal(t *testing.T, v *stream.Vault, d holdfast.Doer, name string, all ...stream.Event) {
	t.Helper()
	if _, err := v.Append(t.Context(), d, name, stream.Any, all...); err != nil {
		t.Fatal(err)
	}
}

// shown reads a stream through a vault, as one line.
func shown(t *testing.T, v *stream.Vault, d holdfast.Doer, name string) string {
	t.Helper()
	all, err := holdfast.Collect(v.Read(t.Context(), d, name, 0))
	if err != nil {
		t.Fatal(err)
	}
	var line []string
	for _, e := range all {
		text := e.Name + "=" + string(e.Data)
		if e.Forgotten {
			text += "!"
		}
		line = append(line, text)
	}
	return strings.Join(line, " ")
}

// TestAVaultGivesBackWhatItTook verifies that data comes back byte for byte, by
// every way of reading and on another node, that events without a subject are
// left alone, and that workspaces have keys of their own.
func TestAVaultGivesBackWhatItTook(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, where string) {
		db := holdfasttest.At(where)
		hf, other := holdfasttest.OpenOn(t, db), holdfasttest.OpenOn(t, db)
		v, again := newVault(t, "m"), newVault(t, "m")
		mustSeal(t, v, hf, "s",
			about("ann", "a", ` {"x":  1e2} `), about("", "b", `{"y":2}`), about("bob", "c", `"text"`), stream.Event{Name: "d", Subject: "ann"})
		const want = `a= {"x":  1e2}  b={"y":2} c="text" d={}`
		if got := shown(t, again, other, "s"); got != want {
			t.Errorf("read %s, want %s", got, want)
		}
		back, err := testkit.First(2, again.ReadBackward(t.Context(), other, "s", -1))
		if err != nil || len(back) != 2 || string(back[1].Data) != `"text"` || back[1].Subject != "bob" {
			t.Errorf("read backward %+v, %v", back, err)
		}
		all, err := holdfast.Collect(stream.Read(t.Context(), hf, "s", 0))
		if err != nil || bytes.Contains(all[0].Data, []byte(`"x"`)) || string(all[1].Data) != `{"y":2}` {
			t.Errorf("read without the vault %+v, %v", all, err)
		}
		elsewhere := holdfast.InWorkspace(t.Context(), "elsewhere")
		if _, err := v.Append(elsewhere, hf, "s", stream.None, about("ann", "a", `1`)); err != nil {
			t.Error(err)
		}
		if _, err := v.Forget(elsewhere, hf, "ann"); err != nil {
			t.Error(err)
		}
		if got := shown(t, v, hf, "s"); got != want {
			t.Errorf("after ann was forgotten in another workspace: got %s, want %s", got, want)
		}
	})
}

// TestForgettingHoldsAtOnceEverywhere verifies that once a subject is forgotten
// its data is null on every node, also on one that had just read it; that nothing
// more is taken for it; that others are untouched; and that it may be repeated,
// and come before anything is known.
func TestForgettingHoldsAtOnceEverywhere(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, where string) {
		db := holdfasttest.At(where)
		hf, other := holdfasttest.OpenOn(t, db), holdfasttest.OpenOn(t, db)
		v, node := newVault(t, "m"), newVault(t, "m")
		mustSeal(t, v, hf, "s", about("ann", "a", `1`), about("bob", "b", `2`), about("", "c", `3`))
		if got := shown(t, node, other, "s"); got != "a=1 b=2 c=3" {
			t.Fatal(got)
		}
		for _, want := range []bool{true, false} {
			if had, err := v.Forget(t.Context(), hf, "ann"); err != nil || had != want {
				t.Errorf("forget returned %v, %v, want %v", had, err, want)
			}
		}
		for _, n := range []struct {
			v *stream.Vault
			d holdfast.Doer
		}{{v, hf}, {node, other}} {
			if got := shown(t, n.v, n.d, "s"); got != "a=null! b=2 c=3" {
				t.Errorf("after forget: got %s, want a=null! b=2 c=3", got)
			}
			_, err := n.v.Append(t.Context(), n.d, "s", stream.Any, about("", "x", `0`), about("ann", "y", `0`))
			testkit.WantCode(t, err, fault.Conflict, "without a subject")
		}
		if had, err := v.Forget(t.Context(), hf, "eve"); err != nil || had {
			t.Errorf("forget of an unknown subject returned %v, %v, want false", had, err)
		}
		_, err := node.Append(t.Context(), other, "s", stream.Any, about("eve", "y", `0`))
		testkit.WantCode(t, err, fault.Conflict, "eve")
		if got := shown(t, v, hf, "s"); got != "a=null! b=2 c=3" {
			t.Errorf("after the refused append: got %s, want a=null! b=2 c=3", got)
		}
		_, err = v.Forget(t.Context(), hf, "")
		testkit.WantCode(t, err, fault.Validation, "subject")
	})
}

// TestRacingAppendsUseOneKey verifies that of many who append first for a subject,
// on two nodes and half of them in transactions, all use the key that was stored:
// everything can be read.
func TestRacingAppendsUseOneKey(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, where string) {
		db := holdfasttest.At(where)
		nodes := []*holdfast.Engine{holdfasttest.OpenOn(t, db), holdfasttest.OpenOn(t, db)}
		v := newVault(t, "m")
		for round := range 4 {
			name := fmt.Sprint("s", round)
			_, lost := holdfasttest.Race(t, 16, func(i int) error {
				e, hf := about(fmt.Sprint("ann", round), "a", `1`), nodes[i%2]
				if i%4 < 2 {
					_, err := v.Append(t.Context(), hf, name, stream.Any, e)
					return err
				}
				return hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
					_, err := v.Append(ctx, tx, name, stream.Any, e)
					return err
				})
			})
			if len(lost) > 0 {
				t.Fatal(lost[0])
			}
			if got := shown(t, v, nodes[0], name); got != strings.TrimSpace(strings.Repeat("a=1 ", 16)) {
				t.Errorf("read %s", got)
			}
		}
	})
}

// TestAppendsThatRaceWithForgettingLeaveNothing verifies that whoever appends
// while a subject is forgotten is refused, or has appended what nobody can read.
func TestAppendsThatRaceWithForgettingLeaveNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		v := newVault(t, "m")
		mustSeal(t, v, hf, "s", about("ann", "a", `1`))
		_, lost := holdfasttest.Race(t, 17, func(i int) error {
			if i == 8 {
				_, err := v.Forget(t.Context(), hf, "ann")
				return err
			}
			_, err := v.Append(t.Context(), hf, "s", stream.Any, about("ann", "a", `1`))
			return err
		})
		for _, err := range lost {
			testkit.WantCode(t, err, fault.Conflict, "forgotten")
		}
		if got := strings.ReplaceAll(shown(t, v, hf, "s"), "a=null!", ""); strings.TrimSpace(got) != "" {
			t.Errorf("forgotten events are still readable: %s", got)
		}
	})
}

// TestATransactionThatIsRolledBackLeavesNoKey verifies that a key that was made
// in a transaction goes with it, and that another is made later.
func TestATransactionThatIsRolledBackLeavesNoKey(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		v := newVault(t, "m")
		gone := errors.New("gone")
		err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			if _, err := v.Append(ctx, tx, "s", stream.None, about("ann", "a", `1`)); err != nil {
				return err
			}
			if all, err := holdfast.Collect(v.Read(ctx, tx, "s", 0)); err != nil || len(all) != 1 || string(all[0].Data) != `1` {
				t.Errorf("in the transaction: got %+v, %v", all, err)
			}
			return gone
		})
		if !errors.Is(err, gone) {
			t.Fatal(err)
		}
		if had, err := v.Forget(t.Context(), hf, "ann"); err != nil || had {
			t.Errorf("a key is left after the rollback: %v, %v", had, err)
		}
		mustSeal(t, v, hf, "s", about("bob", "b", `2`))
		if got := shown(t, v, hf, "s"); got != "b=2" {
			t.Error(got)
		}
	})
}

// TestNoPlaintextReachesTheDatabase verifies that data with a subject is nowhere
// in the database, neither from appends nor from an aggregate; a word that is
// written in the open shows that the search finds what is there.
func TestNoPlaintextReachesTheDatabase(t *testing.T) {
	const secret, open = "Rumpelstilzchen", "Schneewittchen"
	write := func(t *testing.T, hf *holdfast.Engine) {
		v := newVault(t, "master-key-in-use")
		mustSeal(t, v, hf, "s", about("ann", "a", `{"name": "`+secret+`"}`), about("", "b", `{"name": "`+open+`"}`))
		sealed := stream.Fold("purse-", foldPurse, stream.WithVault(v))
		mustDo(t, sealed, hf, "a", func(purse) ([]stream.Event, error) {
			return []stream.Event{about("ann", "moved", `{"by": 1, "why": "`+secret+`"}`)}, nil
		})
		mustDo(t, stream.Fold("open-", foldPurse, stream.SnapshotEvery(1, "1")), hf, "a", func(purse) ([]stream.Event, error) {
			return []stream.Event{{Name: "moved"}}, nil
		})
	}
	search := func(t *testing.T, all []byte) {
		if !bytes.Contains(all, []byte(open)) {
			t.Errorf("the search does not find plain data in %d bytes", len(all))
		}
		for _, word := range []string{secret, "master-key-in-use"} {
			if bytes.Contains(all, []byte(word)) {
				t.Errorf("the database contains %q", word)
			}
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := holdfasttest.SQLite(t)
		write(t, holdfasttest.OpenOn(t, sqlite.File(path)))
		all, err := exec.Command("cat", path, path+"-wal").Output() // this process must not open them
		if err != nil {
			t.Fatal(err)
		}
		search(t, all)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		hf := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.PostgreSQL(t)))
		write(t, hf)
		search(t, dump(t, hf, "event", "history", "subject", "snapshot", "stream"))
	})
}

// dump returns whole tables as text; bytes, which are shown in hex, also as text.
func dump(t *testing.T, hf *holdfast.Engine, tables ...string) (all []byte) {
	t.Helper()
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		for _, table := range append(tables, "(SELECT encode(key, 'escape') FROM holdfast.subject)") {
			if !strings.HasPrefix(table, "(") {
				table = "holdfast." + table
			}
			var text string
			if err := postgres.Raw(tx).QueryRow(ctx, `SELECT coalesce(string_agg(x::text, ' '), '') FROM `+table+` AS x`).Scan(&text); err != nil {
				return err
			}
			all = append(all, text...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTamperedDataIsAnError verifies that data or a key that was changed, moved
// or put there in the open is an error that names the event, and shows nothing.
func TestTamperedDataIsAnError(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		v := newVault(t, "m")
		for i, c := range []struct{ what, says, statement string }{
			{"a letter was changed", "was changed after it was appended", `UPDATE @event SET data = (substr(data::text, 1, 39) || CASE substr(data::text, 40, 1) WHEN 'A' THEN 'B' ELSE 'A' END || substr(data::text, 41))::json WHERE stream = $1`},
			{"it was cut off", "was changed after it was appended", `UPDATE @event SET data = '{"$sealed":"AAAA"}' WHERE stream = $1`},
			{"it is no base64", "was changed after it was appended", `UPDATE @event SET data = '{"$sealed":"-"}' WHERE stream = $1`},
			{"it is in the open", "not encrypted", `UPDATE @event SET data = '{"a":2}' WHERE stream = $1`},
			{"the name is another", "was changed after it was appended", `UPDATE @event SET name = 'c' WHERE stream = $1 AND name = 'a'`},
			{"the subject is another", "was changed after it was appended", `UPDATE @event SET subject = 'bob' || substr(subject, 4) WHERE stream = $1 AND name = 'a'`},
			{"the subject has no key", "has no key", `UPDATE @event SET subject = 'eve' WHERE stream = $1`},
			{"the subject is gone", "has no subject", `UPDATE @event SET subject = NULL WHERE stream = $1`},
			{"it is another stream's", "was changed after it was appended", `UPDATE @event SET data = (SELECT x.data FROM @event AS x WHERE x.stream = 'copied') WHERE stream = $1 AND name = 'a'`},
			{"the key is gone", "has no key", `DELETE FROM @subject WHERE name = 'ann' || substr($1, 2)`},
			{"the key is another's", "another subject", `UPDATE @subject SET key = (SELECT x.key FROM @subject AS x WHERE x.name = 'bob' || substr($1, 2)) WHERE name = 'ann' || substr($1, 2)`},
			{"the key was cut off", "is damaged, or belongs", `UPDATE @subject SET key = substr(key, 1, 20) WHERE name = 'ann' || substr($1, 2)`},
			{"the key is a stub", "is damaged, or belongs", `UPDATE @subject SET key = substr(key, 1, 1) WHERE name = 'ann' || substr($1, 2)`},
		} {
			name, id := fmt.Sprint("s", i), fmt.Sprint(i)
			mustSeal(t, v, hf, name, about("ann"+id, "a", `{"a":1}`), about("bob"+id, "b", `{"b":1}`))
			if c.what == "it is another stream's" {
				mustSeal(t, v, hf, "copied", about("ann"+id, "a", `{"a":1}`))
			}
			if got := shown(t, v, hf, name); got != `a={"a":1} b={"b":1}` {
				t.Fatal(got)
			}
			meddle(t, hf, c.statement, name)
			all, err := holdfast.Collect(v.Read(t.Context(), hf, name, 0))
			if all != nil {
				t.Errorf("%s: read returned %+v, want nothing", c.what, all)
			}
			t.Run(c.what, func(t *testing.T) { testkit.WantCode(t, err, fault.DatabaseDamaged, c.says) })
			raw, err := holdfast.Collect(stream.Read(t.Context(), hf, name, 0))
			if err != nil {
				t.Fatal(err)
			}
			before := fmt.Sprintf("%+v", raw)
			if err := v.Open(t.Context(), hf, raw); err == nil || fmt.Sprintf("%+v", raw) != before {
				t.Errorf("%s: open changed it to %+v, %v", c.what, raw, err)
			}
		}
	})
}

// TestAnotherMasterKeyIsRefused verifies that a vault with another master key
// reads nothing, appends nothing under a key that it cannot open, and says why.
func TestAnotherMasterKeyIsRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		mustSeal(t, newVault(t, "m"), hf, "s", about("ann", "a", `1`))
		wrong := newVault(t, "w")
		_, err := holdfast.Collect(wrong.Read(t.Context(), hf, "s", 0))
		testkit.WantCode(t, err, fault.Forbidden, "another master key")
		_, err = wrong.Append(t.Context(), hf, "s", stream.Any, about("ann", "a", `1`))
		testkit.WantCode(t, err, fault.Forbidden, "another master key")
		if got := shown(t, newVault(t, "m"), hf, "s"); got != "a=1" {
			t.Error(got)
		}
	})
	for _, n := range []int{0, 16, 31, 33} {
		_, err := stream.NewVault(make([]byte, n))
		testkit.WantCode(t, err, fault.Validation, "32 random bytes")
	}
	_, err := stream.NewVault(make([]byte, 32))
	testkit.WantCode(t, err, fault.Validation, "all are zero")
	if text := fmt.Sprintf("%v %+v %#v", newVault(t, "m"), newVault(t, "m"), newVault(t, "m")); text != "stream.Vault stream.Vault stream.Vault" {
		t.Error(text)
	}
}

// TestWhatAVaultRefuses verifies that nothing with a subject gets past the vault,
// and that what cannot be given back is not taken.
func TestWhatAVaultRefuses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		v := newVault(t, "m")
		_, err := stream.Append(t.Context(), hf, "s", stream.Any, about("ann", "a", `1`))
		testkit.WantCode(t, err, fault.Validation, "through a Vault")
		for _, refused := range []struct {
			e    stream.Event
			code fault.Code
		}{
			{about("", "a", `{"$sealed":"AAAA"}`), fault.Validation},
			{about("ann", "a", `{"$sealed":"AAAA"}`), fault.Validation},
			{about("ann", "a", `{"a":1,"a":2}`), fault.Validation},
			{about("ann", "a", ``), fault.Validation},
			{about("an\nn", "a", `1`), fault.Validation},
			{about("ann", "a", `"`+strings.Repeat("x", strictjson.MaxBytes*3/4)+`"`), fault.PayloadTooLarge},
		} {
			_, err := v.Append(t.Context(), hf, "s", stream.Any, refused.e)
			testkit.WantCode(t, err, refused.code, "event 0")
		}
		most := `"` + strings.Repeat("x", strictjson.MaxBytes*3/4-64) + `"`
		mustSeal(t, v, hf, "s", about("ann", "a", most))
		if got := shown(t, v, hf, "s"); got != "a="+most {
			t.Errorf("stored %d characters, read %d", len(most), len(got))
		}
		all, err := holdfast.Collect(v.Read(t.Context(), hf, "s", 0))
		if err != nil {
			t.Fatal(err)
		}
		testkit.WantCode(t, v.Open(t.Context(), hf, all), fault.DatabaseDamaged, "already decrypted")
	})
}

// TestASealedAggregateForgets verifies that an aggregate folds and decides on
// decrypted data, and on null once the subject is forgotten.
func TestASealedAggregateForgets(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		v := newVault(t, "m")
		people := stream.Fold("person-", func(s []string, e stream.Event) ([]string, error) {
			if e.Forgotten {
				return append(s, "forgotten"), nil
			}
			return append(s, string(e.Data)), nil
		}, stream.WithVault(v))
		say := func(subject, data string) func([]string) ([]stream.Event, error) {
			return func([]string) ([]stream.Event, error) { return []stream.Event{about(subject, "said", data)}, nil }
		}
		mustDo(t, people, hf, "7", say("ann", `1`))
		if s := mustDo(t, people, hf, "7", say("bob", `2`)); fmt.Sprint(s) != "[1 2]" {
			t.Error(s)
		}
		if _, err := v.Forget(t.Context(), hf, "ann"); err != nil {
			t.Fatal(err)
		}
		if s, at := mustLoad(t, people, hf, "7"); fmt.Sprint(s) != "[forgotten 2]" || at != 1 {
			t.Error(s, at)
		}
		_, err := people.Do(t.Context(), hf, "7", say("ann", `3`))
		testkit.WantCode(t, err, fault.Conflict, "forgotten")
		if s := mustDo(t, people, hf, "7", say("", `4`)); fmt.Sprint(s) != "[forgotten 2 4]" {
			t.Error(s)
		}
	})
}
