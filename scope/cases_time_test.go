package scope_test

import (
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/scope"
)

// timedKinds are what the stores of the timed cases know of their kinds.
var timedKinds = []scope.Kind{{Name: "brief", TTL: time.Minute}, {Name: scope.User, TTL: 2 * time.Hour}, {Name: scope.Request, TTL: -1}}

// wantLifetime checks that a scope of a kind exists for long after a change, and then expires.
func (e *env) wantLifetime(kind string, o []scope.Option, long time.Duration) {
	e.Helper()
	s := at[cart](e, kind, "u", o...)
	made, err := s.Inc(e.ctx, "total", 1)
	e.ok(err)
	e.pass(long - 30*time.Second) // a busy machine takes its time
	got, err := s.Get(e.ctx)
	e.ok(err)
	e.equal(kind+" there before", got.Exists, true)
	e.pass(31 * time.Second)
	got, err = s.Get(e.ctx)
	e.ok(err)
	if got.Exists || got.Version != -1 || got.State.Total != 0 {
		e.Errorf("%s created at %d with %d still exists after its TTL: %+v", kind, made.Version, made.State.Total, got)
	}
}

var timedCases = []testCase{
	{"each kind has its time to live, and each handle its own", func(e *env) {
		e.wantLifetime("brief", nil, time.Minute)
		e.wantLifetime(scope.User, nil, 2*time.Hour)
		e.wantLifetime(scope.Session, nil, 24*time.Hour)
		e.wantLifetime(scope.Session, []scope.Option{scope.TTL(time.Minute)}, time.Minute)
		e.wantLifetime("other", []scope.Option{scope.TTL(time.Hour)}, time.Hour)
		for kind, o := range map[string][]scope.Option{"other": nil, scope.Org: nil, scope.Request: nil, "brief": {scope.TTL(-1)}} {
			_, err := at[cart](e, kind, "kept", o...).Inc(e.ctx, "total", 1)
			e.ok(err)
		}
		e.pass(20 * 365 * 24 * time.Hour)
		for _, kind := range []string{"other", scope.Org, scope.Request, "brief"} {
			s, err := at[cart](e, kind, "kept").Get(e.ctx)
			e.ok(err)
			e.equal(kind, s.Exists, true)
		}
	}},
	{"each change lengthens the life, what changes nothing does not", func(e *env) {
		s := e.raw("u", scope.TTL(time.Minute))
		for range 3 {
			for _, v := range verbs[:6] {
				_, err := v.do(e.ctx, s)
				e.ok(err)
				e.pass(45 * time.Second)
			}
			_, err := e.raw("u", scope.TTL(time.Minute)).Patch(e.ctx, map[string]any{"a": 2})
			e.ok(err)
		}
		e.pass(45 * time.Second)
		for _, same := range []func() error{
			func() error { _, err := s.Patch(e.ctx, map[string]any{"a": 2}); return err },
			func() error { _, err := s.DeleteRecord(e.ctx, "r", "none"); return err },
		} {
			e.ok(same())
		}
		got, err := s.Get(e.ctx)
		e.ok(err)
		e.equal("there", got.Exists, true)
		e.pass(20 * time.Second)
		e.isNone("u")
	}},
	{"a change without a time to live ends it", func(e *env) {
		_, err := e.raw("u", scope.TTL(time.Minute)).Inc(e.ctx, "n", 1)
		e.ok(err)
		_, err = e.raw("u").Inc(e.ctx, "n", 1)
		e.ok(err)
		e.pass(time.Hour)
		e.is("u", `{"n":2}`, 1)
	}},
	{"written when it has ended, it begins anew above every old version", func(e *env) {
		for _, v := range verbs {
			id := v.name
			_, err := e.raw(id, scope.TTL(time.Minute)).Patch(e.ctx, map[string]any{"n": 7, "l": []int{1}, "r": map[string]int{"k": 1, "o": 1}})
			e.ok(err)
			_, err = e.raw(id, scope.TTL(time.Minute)).Inc(e.ctx, "n", 1)
			e.ok(err)
		}
		e.pass(2 * time.Minute)
		made := map[string]string{"patch": `{"p":true}`, "inc": `{"n":1}`, "push": `{"l":["x"]}`, "set": `{"r":{"k":"x"}}`, "atomic": `{"a":1}`}
		for _, v := range verbs {
			for _, o := range []scope.Option{scope.ExpectVersion(1), scope.Present()} {
				_, err := v.do(e.ctx, e.raw(v.name, o))
				e.equal("lastVersion", e.refused(err, fault.Concurrency).Fields["lastVersion"], -1)
			}
			s, err := v.do(e.ctx, e.raw(v.name, scope.Absent()))
			e.ok(err)
			if doc, makes := made[v.name]; makes {
				e.like(s, doc, 2, true)
				e.is(v.name, doc, 2)
				continue
			}
			e.absent(s, -1, false)
		}
	}},
	{"what is swept begins anew above every old version", func(e *env) {
		_, err := e.raw("u", scope.TTL(time.Minute)).Inc(e.ctx, "n", 1)
		e.ok(err)
		last, err := e.raw("u", scope.TTL(time.Minute)).Inc(e.ctx, "n", 1)
		e.ok(err)
		_, err = e.raw("d").Inc(e.ctx, "n", 1)
		e.ok(err)
		gone, err := e.raw("d").Delete(e.ctx)
		e.ok(err)
		for range 4 {
			e.sweep()
			e.pass(25 * time.Hour)
		}
		e.isNone("u")
		e.isNone("d")
		for id, above := range map[string]int64{"u": last.Version, "d": gone.Version} {
			for stale := range above + 1 {
				_, err := e.raw(id, scope.ExpectVersion(stale)).Inc(e.ctx, "n", 1)
				e.refused(err, fault.Concurrency)
			}
			s, err := e.raw(id).Inc(e.ctx, "n", 5)
			e.ok(err)
			if s.Version <= above || !s.Changed {
				e.Errorf("%s was at version %d and is recreated at %d, want higher", id, above, s.Version)
			}
			e.is(id, `{"n":5}`, s.Version)
			for stale := range above + 1 {
				_, err := e.raw(id, scope.ExpectVersion(stale)).Inc(e.ctx, "n", 1)
				e.refused(err, fault.Concurrency)
			}
			if s, err = e.raw(id, scope.ExpectVersion(s.Version)).Inc(e.ctx, "n", 1); err != nil {
				e.Error(err)
			}
		}
		e.wantClean()
	}},
}

// sweep has the store take away what has ended.
func (e *env) sweep() {
	e.Helper()
	if e.hf != nil {
		engine.Of(e.hf).Round(e.ctx)
		return
	}
	_, err := e.own.Sweep(e.ctx)
	e.ok(err)
}

// wantClean checks that the database violates no invariant.
func (e *env) wantClean() {
	e.Helper()
	if e.hf == nil {
		return
	}
	report, err := e.hf.Check(e.ctx)
	e.ok(err)
	if !report.Clean() {
		e.Errorf("%s", report)
	}
}
