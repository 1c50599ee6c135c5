package workflow

import (
	"strings"
)

// textOf refuses a value that is not a string.
func textOf(what string, v any) string {
	s, ok := v.(string)
	if !ok {
		panic(wrong(what, v, "a string"))
	}
	return s
}

// texts refuses arguments that are not strings, and pays for reading them.
func texts(m *meter, what string, args []any) (all [3]string) {
	for i, v := range args {
		all[i] = textOf(what, v)
	}
	m.payText(all[:]...)
	return all
}

// ofText returns a function of one string, whose result is not much longer.
func ofText(what string, f func(string) string) operation {
	return func(m *meter, args []any) any { return f(texts(m, what, args)[0]) }
}

// ofTexts returns a function of two strings, whose result is not longer.
func ofTexts[T string | bool](what string, f func(a, b string) T) operation {
	return func(m *meter, args []any) any {
		s := texts(m, what, args)
		return f(s[0], s[1])
	}
}

var (
	startsWith = ofTexts("startsWith", strings.HasPrefix)
	endsWith   = ofTexts("endsWith", strings.HasSuffix)
)

// grow pays for a string of size bytes before it is created.
func grow(m *meter, size int) {
	if size > maxText {
		panic(refuse("a string of %d bytes is too long: the limit is %d", size, maxText))
	}
	m.pay(size / 128)
}

func splitText(m *meter, args []any) any {
	s := texts(m, "split", args)
	m.pay(strings.Count(s[0], s[1]) + 1)
	parts := strings.Split(s[0], s[1])
	all := make([]any, len(parts))
	for i, part := range parts {
		all[i] = part
	}
	return all
}

func joinTexts(m *meter, args []any) any {
	all, between := listOf("join", args[0]), ""
	if len(args) > 1 {
		between = textOf("join", args[1])
	}
	m.pay(len(all))
	parts, size := make([]string, len(all)), len(between)*max(0, len(all)-1)
	for i, v := range all {
		parts[i] = textOf("join", v)
		size += len(parts[i])
	}
	grow(m, size)
	return strings.Join(parts, between)
}

func replaceText(m *meter, args []any) any {
	s := texts(m, "replace", args)
	grow(m, len(s[0])+strings.Count(s[0], s[1])*(len(s[2])-len(s[1])))
	return strings.ReplaceAll(s[0], s[1], s[2])
}

// stringOf converts a value to a string: its JSON, unless it is a string.
func stringOf(m *meter, args []any) any {
	if s, ok := args[0].(string); ok {
		return s
	}
	m.pay(weight(args[0], maxText) / 16)
	doc, err := result(args[0])
	if err != nil {
		panic(err)
	}
	return string(doc)
}
