package store

// Each returns a scanner for a result with any number of rows. dest returns the destinations of one row's
// columns.
func Each[T any](dest func(*T) []any) func(*[]T, Row) error {
	return func(all *[]T, r Row) error {
		var none T
		*all = append(*all, none)
		return r.Scan(dest(&(*all)[len(*all)-1])...)
	}
}

// Outcome returns a scanner for a result that says whether the command was applied. dest returns the
// destination of that flag and those of the columns.
func Outcome[R any](dest func(*R) (applied *bool, columns []any)) func(*R, Row) error {
	return func(out *R, r Row) error {
		applied, columns := dest(out)
		*applied = r.Applied()
		return r.Scan(columns...)
	}
}

// First returns the first element of a result, or the error of missing if the result is empty.
func First[T any](all []T, err error, missing func() error) (first T, _ error) {
	if err == nil && len(all) == 0 {
		err = missing()
	}
	if err != nil {
		return first, err
	}
	return all[0], nil
}

// ScanValue scans a result of one column.
func ScanValue[T any](v *T, r Row) error { return r.Scan(v) }

// ScanValues scans a result of one column and any number of rows.
func ScanValues[T any](all *[]T, r Row) error {
	var none T
	*all = append(*all, none)
	return r.Scan(&(*all)[len(*all)-1])
}

// ScanApplied scans a result that says only whether the command was applied.
func ScanApplied(applied *bool, r Row) error {
	*applied = r.Applied()
	return nil
}

// CountRows counts the rows of a result.
func CountRows(n *int, _ Row) error {
	*n++
	return nil
}
