package requests

import "context"

// RenewOnce renews the key of a flight, as [Flight.Keep] does all the time.
func (f *Flight) RenewOnce(ctx context.Context) error { return f.renew(ctx, f.Engine) }
