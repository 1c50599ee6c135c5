package retention

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

type decideArgs struct {
	byDefault bool `arg:"by_default"`
}

var (
	getVerb = store.VerbOf[struct{}](store.Decl{Name: "meta.get_retention", Lane: store.Read}, nil,
		store.Each(func(b *bool) []any { return []any{b} }))
	usedVerb   = store.VerbOf[struct{}](store.Decl{Name: "meta.is_used", Lane: store.Read}, nil, store.ScanValue[bool])
	decideVerb = store.VerbOf[decideArgs](store.Decl{Name: "meta.decide_retention", Lane: store.Work}, nil, store.CountRows)
)

// ByDefault reports whether a server without settings deletes old histories of a database: not if anything but API keys was
// written to it before a server without settings opened it for the first time.
func ByDefault(ctx context.Context, d store.Doer) (bool, error) {
	decided, err := getVerb.DoAt(ctx, d, store.Partition{}, struct{}{})
	if err != nil || len(decided) > 0 {
		return len(decided) > 0 && decided[0], err
	}
	shards, err := store.Shards(ctx, d)
	used := false
	for _, shard := range shards {
		var here bool
		if here, err = usedVerb.DoAt(ctx, d, store.Partition{Shard: shard}, struct{}{}); err != nil {
			break
		}
		used = used || here
	}
	if err != nil {
		return false, err
	}
	if _, err := decideVerb.DoAt(ctx, d, store.Partition{}, decideArgs{!used}); err != nil {
		return false, err
	}
	decided, err = getVerb.DoAt(ctx, d, store.Partition{}, struct{}{}) // another server may have decided
	return len(decided) > 0 && decided[0], err
}
