package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/wire"
)

// A page of items is accepted by the server, whatever the sizes of the items: only an item that is too large by itself makes a page that is too large.
func TestPagesOfItemsFitIntoARequest(t *testing.T) {
	for _, c := range []struct {
		kib  []int // the sizes of the items
		want []int // the numbers of items of the pages
	}{
		{nil, nil},
		{[]int{1, 1, 1}, []int{3}},
		{[]int{500, 600}, []int{1, 1}},
		{[]int{600, 1, 1}, []int{1, 2}},
		{[]int{1, 510, 510, 1}, []int{2, 2}},
		{[]int{2000, 1}, []int{1, 1}},
		{slices.Repeat([]int{0}, 2*itemPage+1), []int{itemPage, itemPage, 1}},
	} {
		for _, list := range []bool{false, true} {
			var items []string
			for i, kib := range c.kib {
				items = append(items, fmt.Sprintf(`{"key": "i%d", "cost": 1, "input": %q}`, i, strings.Repeat("x", kib<<10)))
			}
			text := strings.Join(items, "\n")
			if list {
				text = "[" + strings.Join(items, ",") + "]"
			}
			var got []int
			read := 0
			err := itemsFile{}.each(strings.NewReader(text), list, func(page []wire.NewItem) error {
				got = append(got, len(page))
				for _, x := range page {
					if want := fmt.Sprintf("i%d", read); x.Key != want {
						t.Errorf("items of %v KiB: got item %q, want %q", c.kib, x.Key, want)
					}
					read++
				}
				if body, err := json.Marshal(wire.AddItems{Items: page}); err != nil || len(page) > 1 && len(body) > strictjson.MaxBytes {
					t.Errorf("items of %v KiB: a page of %d items has %d bytes, error %v", c.kib, len(page), len(body), err)
				}
				return nil
			})
			if err != nil || !slices.Equal(got, c.want) || read != len(c.kib) {
				t.Errorf("items of %v KiB, list %v: got pages %v with %d items, error %v, want pages %v", c.kib, list, got, read, err, c.want)
			}
		}
	}
}
