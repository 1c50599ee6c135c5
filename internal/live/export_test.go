package live

// SetLimit sets how many events of the histories one read returns.
func SetLimit(n int) { limit = n }
