package scopestore

import (
	"encoding/json"
	"strconv"
	"strings"
)

// plainNumbers gives the numbers of a value their one form: PostgreSQL by itself writes 100
// for 1e2 and takes 1.0 for the same as 1, SQLite does neither.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			v[name] = plainNumbers(item)
		}
	case []any:
		for i, item := range v {
			v[i] = plainNumbers(item)
		}
	case json.Number:
		return json.Number(plain(string(v)))
	}
	return v
}

// plain moves the point of a number by its exponent, and leaves out what is worth nothing.
func plain(number string) string {
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
