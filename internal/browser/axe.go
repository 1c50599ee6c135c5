package browser

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/holdfast-go/holdfast/internal/pgtest"
)

// axePackage is the npm package that finds barriers for people with disabilities.
const axePackage = `{"private": true, "dependencies": {"axe-core": "4.14.0"}}`

var axeSource = sync.OnceValues(func() ([]byte, error) {
	dir, err := pgtest.Packages(context.Background(), []byte(axePackage))
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
})

// Axe returns the violations of WCAG 2.2 at level AA that axe-core finds in the page, one for each element. If axe-core
// cannot be installed, it reports a note. It is for tests at level check, because it may install axe-core.
func (p *Page) Axe() (violations []string) {
	p.t.Helper()
	source, err := axeSource()
	if err != nil {
		note(p.t, "axe-core cannot be installed, so the accessibility of pages was not tested", err)
		return nil
	}
	if err := p.Try(string(source), nil); err != nil {
		p.t.Fatalf("axe-core: %v", err)
	}
	p.Eval(`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"]}).then(found =>
		found.violations.flatMap(rule => rule.nodes.map(node => rule.id + " (" + rule.impact + "): " + node.failureSummary + "\\n" + node.target + ": " + node.html)))`, &violations)
	return violations
}
