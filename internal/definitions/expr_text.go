package definitions

import (
	"strings"
)

// textOf refuses what is no text.
func textOf(what string, v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", wrong(what, v, "a text")
	}
	return s, nil
}

// texts refuses arguments that are no texts, and pays for going through them.
func texts(m *meter, what string, args []any) (all [3]string, err error) {
	for i, v := range args {
		if all[i], err = textOf(what, v); err != nil {
			return all, err
		}
	}
	return all, m.payText(all[:]...)
}

// grown makes a text of so many bytes, if they are not too many.
func grown(m *meter, size int, text func() string) (any, error) {
	if size > maxText {
		return nil, refuse("a text of %d bytes is too long: %d are allowed", size, maxText)
	}
	if err := m.pay(size / 128); err != nil {
		return nil, err
	}
	return text(), nil
}

func lowerOf(m *meter, args []any) (any, error) {
	s, err := texts(m, "lower", args)
	return strings.ToLower(s[0]), err
}

func upperOf(m *meter, args []any) (any, error) {
	s, err := texts(m, "upper", args)
	return strings.ToUpper(s[0]), err
}

func trimOf(m *meter, args []any) (any, error) {
	s, err := texts(m, "trim", args)
	return strings.TrimSpace(s[0]), err
}

func trimPrefix(m *meter, args []any) (any, error) {
	s, err := texts(m, "trimPrefix", args)
	return strings.TrimPrefix(s[0], s[1]), err
}

func trimSuffix(m *meter, args []any) (any, error) {
	s, err := texts(m, "trimSuffix", args)
	return strings.TrimSuffix(s[0], s[1]), err
}

func startsWith(m *meter, args []any) (any, error) {
	s, err := texts(m, "startsWith", args)
	return strings.HasPrefix(s[0], s[1]), err
}

func endsWith(m *meter, args []any) (any, error) {
	s, err := texts(m, "endsWith", args)
	return strings.HasSuffix(s[0], s[1]), err
}

func contains(m *meter, args []any) (any, error) {
	s, err := texts(m, "contains", args)
	return strings.Contains(s[0], s[1]), err
}

func splitText(m *meter, args []any) (any, error) {
	s, err := texts(m, "split", args)
	if err != nil {
		return nil, err
	}
	if err := m.pay(strings.Count(s[0], s[1]) + 1); err != nil {
		return nil, err
	}
	parts := strings.Split(s[0], s[1])
	all := make([]any, len(parts))
	for i, part := range parts {
		all[i] = part
	}
	return all, nil
}

func joinTexts(m *meter, args []any) (any, error) {
	all, err := listOf("join", args[0])
	if err != nil {
		return nil, err
	}
	between := ""
	if len(args) > 1 {
		if between, err = textOf("join", args[1]); err != nil {
			return nil, err
		}
	}
	if err := m.pay(len(all)); err != nil {
		return nil, err
	}
	parts, size := make([]string, len(all)), len(between)*max(0, len(all)-1)
	for i, v := range all {
		if parts[i], err = textOf("join", v); err != nil {
			return nil, err
		}
		size += len(parts[i])
	}
	return grown(m, size, func() string { return strings.Join(parts, between) })
}

func replaceText(m *meter, args []any) (any, error) {
	s, err := texts(m, "replace", args)
	if err != nil {
		return nil, err
	}
	size := len(s[0]) + strings.Count(s[0], s[1])*(len(s[2])-len(s[1]))
	return grown(m, size, func() string { return strings.ReplaceAll(s[0], s[1], s[2]) })
}

// stringOf makes a text of a value: of any but a text, its JSON.
func stringOf(m *meter, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		return s, nil
	}
	if err := m.pay(weight(args[0], maxText) / 16); err != nil {
		return nil, err
	}
	doc, err := result(args[0])
	return string(doc), err
}
