package telemetry

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// message is an encoded message of protocol buffers. Its methods append a field, or nothing if the field has its default
// value. The numbers of the fields are those of OTLP 1, in opentelemetry/proto/trace/v1/trace.proto.
type message []byte

func (m *message) bytes(field protowire.Number, b []byte) {
	if len(b) > 0 {
		*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), b)
	}
}

func (m *message) text(field protowire.Number, s string) {
	if s != "" {
		*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), s)
	}
}

func (m *message) number(field protowire.Number, n uint64) {
	if n != 0 {
		*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), n)
	}
}

func (m *message) count(field protowire.Number, n int) { m.number(field, uint64(max(n, 0))) }

func (m *message) time(field protowire.Number, t time.Time) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), uint64(max(t.UnixNano(), 0)))
}

func (m *message) flags(field protowire.Number, n uint32) {
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, field, protowire.Fixed32Type), n)
}

// inner appends a message, even if it is empty: its presence may have a meaning.
func (m *message) inner(field protowire.Number, f func(*message)) {
	var in message
	f(&in)
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), in)
}

// encode returns an ExportTraceServiceRequest. Spans are grouped by what made them.
func encode(spans []sdk.ReadOnlySpan) []byte {
	type scopes struct {
		of    *resource.Resource
		order []instrumentation.Scope
		spans map[instrumentation.Scope][]sdk.ReadOnlySpan
	}
	var all []*scopes
	for _, span := range spans {
		var group *scopes
		for _, g := range all {
			if g.of.Equivalent() == span.Resource().Equivalent() {
				group = g
			}
		}
		if group == nil {
			group = &scopes{of: span.Resource(), spans: make(map[instrumentation.Scope][]sdk.ReadOnlySpan)}
			all = append(all, group)
		}
		scope := span.InstrumentationScope()
		if group.spans[scope] == nil {
			group.order = append(group.order, scope)
		}
		group.spans[scope] = append(group.spans[scope], span)
	}
	var out message
	for _, group := range all {
		out.inner(1, func(m *message) { // ResourceSpans
			m.inner(1, func(m *message) { m.attributes(1, group.of.Attributes()) })
			for _, scope := range group.order {
				m.inner(2, func(m *message) { m.scopeSpans(scope, group.spans[scope]) })
			}
			m.text(3, group.of.SchemaURL())
		})
	}
	return out
}

func (m *message) scopeSpans(scope instrumentation.Scope, spans []sdk.ReadOnlySpan) {
	m.inner(1, func(m *message) {
		m.text(1, scope.Name)
		m.text(2, scope.Version)
		m.attributes(3, scope.Attributes.ToSlice())
	})
	for _, span := range spans {
		m.inner(2, func(m *message) { m.span(span) })
	}
	m.text(3, scope.SchemaURL)
}

func (m *message) span(s sdk.ReadOnlySpan) {
	m.ids(1, 2, s.SpanContext())
	m.text(3, s.SpanContext().TraceState().String())
	if parent := s.Parent().SpanID(); parent.IsValid() {
		m.bytes(4, parent[:])
	}
	m.text(5, s.Name())
	m.number(6, uint64(max(s.SpanKind(), 0))) // the numbers are the same
	m.time(7, s.StartTime())
	m.time(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.count(10, s.DroppedAttributes())
	for _, e := range s.Events() {
		m.inner(11, func(m *message) {
			m.time(1, e.Time)
			m.text(2, e.Name)
			m.attributes(3, e.Attributes)
			m.count(4, e.DroppedAttributeCount)
		})
	}
	m.count(12, s.DroppedEvents())
	for _, l := range s.Links() {
		m.inner(13, func(m *message) {
			m.ids(1, 2, l.SpanContext)
			m.text(3, l.SpanContext.TraceState().String())
			m.attributes(4, l.Attributes)
			m.count(5, l.DroppedAttributeCount)
			m.flags(6, flags(l.SpanContext, l.SpanContext))
		})
	}
	m.count(14, s.DroppedLinks())
	m.inner(15, func(m *message) {
		m.text(2, s.Status().Description)
		switch s.Status().Code {
		case codes.Ok:
			m.number(3, 1)
		case codes.Error:
			m.number(3, 2)
		}
	})
	m.flags(16, flags(s.SpanContext(), s.Parent()))
}

func (m *message) ids(traceField, spanField protowire.Number, c trace.SpanContext) {
	traceID, spanID := c.TraceID(), c.SpanID()
	m.bytes(traceField, traceID[:])
	m.bytes(spanField, spanID[:])
}

// flags returns the flags of a span, or of a link: those of its context, whether it is known where the parent or the linked
// span is, and whether that is in another process.
func flags(c, other trace.SpanContext) uint32 {
	const known, remote = 0x100, 0x200
	f := uint32(c.TraceFlags()) | known
	if other.IsRemote() {
		f |= remote
	}
	return f
}

func (m *message) attributes(field protowire.Number, all []attribute.KeyValue) {
	for _, kv := range all {
		m.inner(field, func(m *message) {
			m.text(1, string(kv.Key))
			m.inner(2, func(m *message) { m.value(kv.Value) })
		})
	}
}

// value appends the field of an AnyValue. It is a oneof, so a default value is appended too.
func (m *message) value(v attribute.Value) {
	switch v.Type() {
	case attribute.EMPTY:
	case attribute.STRING:
		*m = protowire.AppendString(protowire.AppendTag(*m, 1, protowire.BytesType), v.AsString())
	case attribute.BOOL:
		*m = protowire.AppendVarint(protowire.AppendTag(*m, 2, protowire.VarintType), protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		*m = protowire.AppendVarint(protowire.AppendTag(*m, 3, protowire.VarintType), uint64(v.AsInt64()))
	case attribute.FLOAT64:
		*m = protowire.AppendFixed64(protowire.AppendTag(*m, 4, protowire.Fixed64Type), math.Float64bits(v.AsFloat64()))
	case attribute.BOOLSLICE:
		list(m, v.AsBoolSlice(), attribute.BoolValue)
	case attribute.INT64SLICE:
		list(m, v.AsInt64Slice(), attribute.Int64Value)
	case attribute.FLOAT64SLICE:
		list(m, v.AsFloat64Slice(), attribute.Float64Value)
	case attribute.STRINGSLICE:
		list(m, v.AsStringSlice(), attribute.StringValue)
	case attribute.SLICE:
		list(m, v.AsSlice(), func(x attribute.Value) attribute.Value { return x })
	case attribute.MAP:
		m.inner(6, func(m *message) { m.attributes(1, v.AsMap()) })
	case attribute.BYTESLICE:
		*m = protowire.AppendBytes(protowire.AppendTag(*m, 7, protowire.BytesType), v.AsByteSlice())
	default:
		m.value(attribute.StringValue(v.String()))
	}
}

func list[E any](m *message, all []E, value func(E) attribute.Value) {
	m.inner(5, func(m *message) {
		for _, x := range all {
			m.inner(1, func(m *message) { m.value(value(x)) })
		}
	})
}

// rejection reads an ExportTraceServiceResponse: how many spans the collector did not take, and why. What it cannot read
// says nothing: the collector has accepted the request.
func rejection(response []byte) (spans int64, reason string) {
	eachField(response, func(field protowire.Number, b []byte, _ uint64) {
		if field != 1 { // partial_success
			return
		}
		eachField(b, func(field protowire.Number, text []byte, n uint64) {
			switch field {
			case 1:
				spans = int64(n)
			case 2:
				reason = string(text)
			}
		})
	})
	return spans, reason
}

// eachField calls f for the fields of a message that are bytes or numbers.
func eachField(m []byte, f func(field protowire.Number, b []byte, n uint64)) {
	for len(m) > 0 {
		field, kind, size := protowire.ConsumeTag(m)
		if size < 0 {
			return
		}
		m = m[size:]
		var b []byte
		var n uint64
		switch kind {
		case protowire.BytesType:
			b, size = protowire.ConsumeBytes(m)
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(m)
		default:
			size = protowire.ConsumeFieldValue(field, kind, m)
		}
		if size < 0 {
			return
		}
		f(field, b, n)
		m = m[size:]
	}
}
