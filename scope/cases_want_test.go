package scope_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/scope"
)

var wantCases = []testCase{
	{"at the version, each verb changes; at another, none does", func(e *env) {
		for _, v := range verbs {
			e.has(v.name, `{}`)
			e.has(v.name, full)
			for _, stale := range []int64{0, 2, 7} {
				_, err := v.do(e.ctx, e.raw(v.name, scope.ExpectVersion(stale)))
				e.equal(v.name+" lastVersion", e.refused(err, fault.Concurrency).Fields["lastVersion"], 1)
			}
			_, err := v.do(e.ctx, e.raw(v.name, scope.Absent()))
			e.equal(v.name+" lastVersion", e.refused(err, fault.Concurrency).Fields["lastVersion"], 1)
			e.is(v.name, full, 1)
			s, err := v.do(e.ctx, e.raw(v.name, scope.ExpectVersion(1)))
			e.ok(err)
			if !s.Changed || s.Version != 2 {
				e.Errorf("%s at version 1: got %+v", v.name, s)
			}
		}
	}},
	{"present: each verb changes what is there, and makes nothing", func(e *env) {
		for _, v := range verbs {
			for _, o := range []scope.Option{scope.Present(), scope.ExpectVersion(0)} {
				_, err := v.do(e.ctx, e.raw(v.name, o))
				e.equal(v.name+" lastVersion", e.refused(err, fault.Concurrency).Fields["lastVersion"], -1)
			}
			e.isNone(v.name)
			e.has(v.name, full)
			s, err := v.do(e.ctx, e.raw(v.name, scope.Present()))
			e.ok(err)
			e.equal(v.name, s.Changed, true)
		}
	}},
	{"absent: each verb makes what is not there", func(e *env) {
		for _, v := range verbs {
			s, err := v.do(e.ctx, e.raw(v.name, scope.Absent()))
			e.ok(err)
			e.equal(v.name, s.Changed, v.name != "delete" && v.name != "unset")
		}
	}},
	{"what changes nothing needs the version all the same", func(e *env) {
		e.has("u", full)
		same := func(_ context.Context, d json.RawMessage) (json.RawMessage, error) { return d, nil }
		for _, stale := range []scope.Option{scope.ExpectVersion(3), scope.Absent()} {
			_, err := e.raw("u", stale).Inc(e.ctx, "n", 0)
			e.refused(err, fault.Concurrency)
			_, err = e.raw("u", stale).Atomic(e.ctx, same)
			e.refused(err, fault.Concurrency)
		}
		s, err := e.raw("u", scope.ExpectVersion(0)).Inc(e.ctx, "n", 0)
		e.ok(err)
		e.like(s, full, 0, false)
		s, err = e.raw("u", scope.ExpectVersion(0)).Atomic(e.ctx, same)
		e.ok(err)
		e.like(s, full, 0, false)
	}},
	{"a function is not called where the version is another", func(e *env) {
		e.has("u", full)
		_, err := e.raw("u", scope.ExpectVersion(5)).Atomic(e.ctx, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			e.Error("the function was called, want it not called")
			return nil, nil
		})
		e.refused(err, fault.Concurrency)
	}},
	{"deleted and made anew, it never has an old version", func(e *env) {
		e.has("u", `{"a":1}`)
		gone, err := e.raw("u").Delete(e.ctx)
		e.ok(err)
		e.absent(gone, 1, true)
		again, err := e.raw("u").Delete(e.ctx)
		e.ok(err)
		e.absent(again, -1, false)
		for _, stale := range []int64{0, 1} {
			for _, v := range verbs {
				_, err := v.do(e.ctx, e.raw("u", scope.ExpectVersion(stale)))
				e.refused(err, fault.Concurrency)
			}
		}
		e.isNone("u")
		s, err := e.raw("u").Inc(e.ctx, "n", 1)
		e.ok(err)
		if !s.Changed || s.Version <= gone.Version {
			e.Errorf("deleted at version %d and recreated at %d, want higher", gone.Version, s.Version)
		}
		e.is("u", `{"n":1}`, s.Version)
		for stale := range s.Version {
			for _, v := range verbs {
				_, err := v.do(e.ctx, e.raw("u", scope.ExpectVersion(stale)))
				e.refused(err, fault.Concurrency)
			}
		}
		if got := e.history("thing", "u"); got != nil {
			e.equal("history", got, "[put deleted inc]")
		}
	}},
	{"versions go on through any number of ends", func(e *env) {
		last := int64(-1)
		for range 5 {
			for _, v := range []verb{verbOf("set"), verbOf("inc"), verbOf("delete")} {
				s, err := v.do(e.ctx, e.raw("u"))
				e.ok(err)
				if s.Version <= last || !s.Changed {
					e.Errorf("%s returned version %d after %d, want higher", v.name, s.Version, last)
				}
				last = s.Version
			}
		}
	}},
	{"workspaces do not see each other", func(e *env) {
		if e.tx != nil {
			return // a transaction is in one workspace
		}
		a, b := freshWorkspace(), freshWorkspace()
		for i, ctx := range []context.Context{a, b, a} {
			s, err := e.raw("u").Inc(ctx, "n", 1)
			e.ok(err)
			e.equal("version", s.Version, []int64{0, 0, 1}[i])
		}
		_, err := e.raw("u").Delete(a)
		e.ok(err)
		s, err := e.raw("u").Get(b)
		e.ok(err)
		e.like(s, `{"n":1}`, 0, false)
		_, err = e.raw("u").Inc(holdfast.InWorkspace(e.ctx, "no such/workspace"), "n", 1)
		e.refused(err, fault.Validation)
	}},
	{"kinds do not see each other", func(e *env) {
		_, err := at[cart](e, "a", "u").Inc(e.ctx, "total", 1)
		e.ok(err)
		s, err := at[cart](e, "b", "u").Get(e.ctx)
		e.ok(err)
		e.equal("exists", s.Exists, false)
	}},
	{"an ended context changes nothing", func(e *env) {
		if e.tx != nil {
			return // its statements have the transaction's
		}
		e.has("u", full)
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		for _, v := range verbs {
			if _, err := v.do(ctx, e.raw("u")); !isCanceled(err) {
				e.Errorf("%s: got %v, want context.Canceled", v.name, err)
			}
		}
		e.is("u", full, 0)
	}},
	{"options that make no sense are refused", func(e *env) {
		for _, v := range verbs {
			for version := int64(-3); version < 0; version++ {
				_, err := v.do(e.ctx, e.raw("u", scope.ExpectVersion(version)))
				e.refused(err, fault.Validation)
			}
			_, err := v.do(e.ctx, e.raw("u", scope.TTL(200*365*24*time.Hour)))
			e.refused(err, fault.Validation)
		}
		e.isNone("u")
	}},
}
