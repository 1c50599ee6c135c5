package keys_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// TestAnOlderNodeRefusesARestrictedKey verifies that the stored hash of a key with restrictions, of its successor and of its session is not
// the one that an older node compares, which does not know restrictions.
func TestAnOlderNodeRefusesARestrictedKey(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		a := plain
		a.Restrictions = keys.Restrictions{RouteGroups: []string{"runs"}}
		k, text := create(t, hf, a)
		_, session := createSession(t, hf, k)
		next, nextText, err := keys.Rotate(t.Context(), engine.Of(hf), k.ID, time.Hour, "bob")
		if err != nil {
			t.Fatal(err)
		}
		_, nextSession := createSession(t, hf, next)
		ring, _ := newRing(hf)
		for _, text := range []string{text, nextText} {
			if accepted(t, ring, text).Restrictions.MayUse("streams") {
				t.Error("the key has lost its restrictions")
			}
		}
		for _, text := range []string{session, nextSession} {
			sessionAccepted(t, ring, text)
		}
		stored := dump(t, hf, "api_key", "hash") + dump(t, hf, "session", "hash")
		for what, text := range map[string]string{"key": text, "successor": nextText, "session": session, "session of the successor": nextSession} {
			if strings.Contains(stored, keys.Hash(text[strings.LastIndex(text, "_")+1:])) {
				t.Errorf("an older node accepts the %s", what)
			}
		}
	})
}

// TestAnOlderNodeCreatesNoKey verifies that the statement of an older node, which would create the successor of a restricted key without its
// restrictions, fails.
func TestAnOlderNodeCreatesNoKey(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) (err error) {
			const columns = "api_key (id, workspace, name, role, requesters, handlers, hash, rate, version, created_by, created_at) SELECT 'k', 'default', 'n', 'read', '[]', '[]', 'h', 0, 0, 'ann', "
			if onSQLite(t) {
				_, err = sqlite.Raw(tx).ExecContext(ctx, "INSERT INTO holdfast_"+columns+"0 WHERE true ON CONFLICT (id) DO NOTHING")
			} else {
				_, err = postgres.Raw(tx).Exec(ctx, "INSERT INTO holdfast."+columns+"now() ON CONFLICT (id) DO NOTHING")
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "restrictions") {
			t.Errorf("got error %v", err)
		}
	})
}
