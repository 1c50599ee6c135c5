package holdfast

import "iter"

// Collect returns all elements of a list as a slice. On an error it also returns the elements before the error.
//
//	failed, err := holdfast.Collect(run.List(ctx, hf, run.Filter{Status: run.Failed}))
func Collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for x, err := range list {
		if err != nil {
			return all, err
		}
		all = append(all, x)
	}
	return all, nil
}
