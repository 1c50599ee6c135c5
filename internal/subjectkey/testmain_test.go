package subjectkey_test

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/holdfasttest"
)

func TestMain(m *testing.M) { os.Exit(holdfasttest.Main(m).Run()) }
