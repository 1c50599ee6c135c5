package scopestore

import (
	"encoding/json"
	"strconv"
	"strings"
)

// canonicalNumbers makes the numbers of a value canonical. PostgreSQL writes 100 for
// 1e2 and treats 1.0 as equal to 1 by itself; SQLite does neither.
func canonicalNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			v[name] = canonicalNumbers(item)
		}
	case []any:
		for i, item := range v {
			v[i] = canonicalNumbers(item)
		}
	case json.Number:
		return json.Number(canonicalNumber(string(v)))
	}
	return v
}

// canonicalNumber removes the exponent of a number and its redundant zeros.
func canonicalNumber(number string) string {
	mantissa, exponent, has := strings.Cut(strings.ToLower(number), "e")
	shift := 0
	if has {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil {
			return number
		}
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	point := len(whole) + shift
	if point <= 0 {
		digits = strings.Repeat("0", 1-point) + digits
		point = 1
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	whole, fraction = strings.TrimLeft(digits[:point], "0"), strings.TrimRight(digits[point:], "0")
	switch {
	case whole == "" && fraction == "":
		return "0"
	case whole == "":
		whole = "0"
	}
	if fraction == "" {
		return sign + whole
	}
	return sign + whole + "." + fraction
}
