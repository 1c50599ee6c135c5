package web

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// without is this package without the dashboard.
const without = `package web

import "net/http"

func Handler() http.Handler { return http.NotFoundHandler() }
`

// TestBinaryGrowth verifies that the command is at most 1.5 MB larger with the dashboard than without it.
func TestBinaryGrowth(t *testing.T) {
	testlevel.Long(t)
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	made := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		name = filepath.Join(made, name)
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, "web.go"): write("web.go", []byte(without)), filepath.Join(dir, "docs.go"): ""}})
	if err != nil {
		t.Fatal(err)
	}
	size := func(name string, args ...string) int64 {
		t.Helper()
		binary := filepath.Join(made, name)
		cmd := exec.Command("go", append([]string{"build", "-o", binary}, append(args, "../cmd/holdfast")...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		info, err := os.Stat(binary)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	with, other := size("with"), size("without", "-overlay", write("overlay.json", overlay))
	grown := with - other
	t.Logf("%d bytes with the dashboard, %d without it: %d more", with, other, grown)
	if grown <= 0 || grown > 1_500_000 {
		t.Errorf("the dashboard adds %d bytes to the command, want at most 1,500,000", grown)
	}
}
