package live

// SetLimit sets how many events of the histories one read returns.
func SetLimit(n int) { limit, ownPage = n, min(n, 500) }

// Limit returns how many it returns.
func Limit() int { return limit }
