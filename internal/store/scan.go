package store

// Each returns a scanner of an answer of any number of rows. dest names where the columns of one go.
func Each[T any](dest func(*T) []any) func(*[]T, Row) error {
	return func(all *[]T, r Row) error {
		var none T
		*all = append(*all, none)
		return r.Scan(dest(&(*all)[len(*all)-1])...)
	}
}

// Outcome returns a scanner of an answer that tells whether the command was applied. dest names where that goes, and where
// the columns go.
func Outcome[R any](dest func(*R) (applied *bool, columns []any)) func(*R, Row) error {
	return func(out *R, r Row) error {
		applied, columns := dest(out)
		*applied = r.Applied()
		return r.Scan(columns...)
	}
}

// First returns the first value of an answer. Where there is none, the error is that of missing.
func First[T any](all []T, err error, missing func() error) (first T, _ error) {
	if err == nil && len(all) == 0 {
		err = missing()
	}
	if err != nil {
		return first, err
	}
	return all[0], nil
}

// ScanValue scans an answer of one column.
func ScanValue[T any](v *T, r Row) error { return r.Scan(v) }

// ScanValues scans an answer of any number of rows of one column.
func ScanValues[T any](all *[]T, r Row) error {
	var none T
	*all = append(*all, none)
	return r.Scan(&(*all)[len(*all)-1])
}

// ScanApplied scans an answer that tells no more than whether the command was applied.
func ScanApplied(applied *bool, r Row) error {
	*applied = r.Applied()
	return nil
}

// CountRows counts the rows of an answer.
func CountRows(n *int, _ Row) error {
	*n++
	return nil
}
