package store_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/holdfast-go/holdfast/internal/store"
)

// collect returns the elements before the first error.
func collect(list iter.Seq2[int, error]) (all []int, err error) {
	for x, err := range list {
		if err != nil {
			return all, err
		}
		all = append(all, x)
	}
	return all, nil
}

// Properties: a list is read page by page to its end, however long it is; an error ends it after the
// elements before; a caller that stops reads no further page.
func TestSeqReadsPageByPage(t *testing.T) {
	reads := 0
	list := func(n int, fails error) func(int, int) ([]int, error) {
		return func(after, limit int) (page []int, err error) {
			reads++
			for x := after + 1; x <= n && len(page) < limit; x++ {
				page = append(page, x)
			}
			if len(page) < limit && fails != nil {
				return nil, fails
			}
			return page, nil
		}
	}
	same := func(x int) int { return x }
	for _, n := range []int{0, 1, 499, 500, 501, 1000, 1203} {
		all, err := collect(store.Seq(list(n, nil), same))
		if err != nil || len(all) != n || n > 0 && (all[0] != 1 || all[n-1] != n) {
			t.Errorf("of %d elements got %d, error %v", n, len(all), err)
		}
	}
	broken := errors.New("broken")
	if all, err := collect(store.Seq(list(700, broken), same)); !errors.Is(err, broken) || len(all) != 500 {
		t.Errorf("got %d elements before the error %v, want 500", len(all), err)
	}
	seq := store.Seq(list(2000, nil), same)
	for range 2 { // a list can be read again
		reads = 0
		for x := range seq {
			if x == 700 {
				break
			}
		}
		if reads != 2 {
			t.Errorf("read %d pages for 700 elements, want 2", reads)
		}
	}
}
