package live

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/retention"
)

// TestALaterOpenTransaction verifies that a read goes back as far as a transaction can have begun that is open now and began
// after the last far read, however long ago that read was; and that a cursor which reaches further back than it says is refused.
func TestALaterOpenTransaction(t *testing.T) {
	now := retention.Now()
	last := retention.Back(now, 5*time.Minute)
	p := Place{Far: Horizon{Next: 10}, Near: Horizon{Next: 10}, From: retention.Back(last, near), Low: retention.Back(last, reach)}
	next, more := p.after(&found{far: true, snapshot: &Horizon{Next: 20, Open: []int64{12}}}, now, 100)
	if more || next.Low > p.From {
		t.Errorf("the next read begins at %s, want at most %s: the transaction may have written there", next.Low, p.From)
	}
	if quiet, _ := p.after(&found{far: true, snapshot: &Horizon{Next: 20}}, now, 100); quiet.Low != retention.Back(now, reach) {
		t.Errorf("without an open transaction, the next read begins at %s", quiet.Low)
	}
	// A watcher that joined during a read of several pages has read more.
	p.Far = Horizon{Next: 30}
	if next, _ := p.after(&found{far: true, snapshot: &Horizon{Next: 20}}, now, 100); next.Far.Next != 30 {
		t.Errorf("the read goes back to %d, want 30", next.Far.Next)
	}
	p.Upto, p.Begun, p.After = &Horizon{Next: 20}, now, retention.First
	if _, ok := Parse(p.Text()); ok {
		t.Error("a cursor that reads from the first id is accepted")
	}
}
