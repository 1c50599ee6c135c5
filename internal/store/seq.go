package store

import "iter"

// seqPage is how many elements [Seq] reads at a time.
const seqPage = 500

// Seq iterates over a list page by page. read returns the elements that follow after, whose zero value
// stands for the start of the list; public converts an element for the caller. The first error ends the iteration.
func Seq[A, B any](read func(after A, limit int) ([]A, error), public func(A) B) iter.Seq2[B, error] {
	return SeqIn(nil, read, public)
}

// SeqIn is [Seq] for a list that belongs to an object. If the list is empty, exists returns an error if there is no such
// object.
func SeqIn[A, B any](exists func() error, read func(after A, limit int) ([]A, error), public func(A) B) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		first := true
		for after := *new(A); ; {
			all, err := read(after, seqPage)
			if err == nil && len(all) == 0 && first && exists != nil {
				err = exists()
			}
			first = false
			if err != nil {
				yield(*new(B), err)
				return
			}
			for _, x := range all {
				if !yield(public(x), nil) {
					return
				}
				after = x
			}
			if len(all) < seqPage {
				return
			}
		}
	}
}
