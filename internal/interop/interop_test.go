// Package interop tests a real server with tools and libraries of other projects: generators of clients, linters, and the
// libraries that receive events and webhooks.
package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// generator is the Go program that generates a client from an OpenAPI document.
const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"

// missing notes that a tool cannot be installed: the run continues without it.
func missing(t *testing.T, tool string, err error) {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	t.Attr(testlevel.NoteAttr, tool+" cannot be installed, so the server was not tested with it: "+reason)
}

// packages returns a directory with the npm packages of testdata/package.json.
func packages(t *testing.T) (string, error) {
	t.Helper()
	list, err := os.ReadFile("testdata/package.json")
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.Packages(t.Context(), list)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// run runs a command that must succeed without an error or a warning, and returns what it printed.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(cmd.Path), err, out)
	}
	return string(out)
}

// serve starts a server on the engine, and returns its URL and a client.
func serve(t *testing.T, e *holdfast.Engine) (*httptest.Server, *client.Client) {
	t.Helper()
	api := httpapi.New(httpapi.Options{NoKeys: true, SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)}, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for _, part := range []holdfast.Part{stream.Feed(stream.FeedOptions{}), api} {
		if err := part.Register(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer(api)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	t.Cleanup(func() { api.Stop(); srv.Close(); cancel(); running.Wait() })
	c, err := client.New(srv.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return srv, c
}

// get returns the body of a page of the server.
func get(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: status %d, %v", url, resp.StatusCode, err)
	}
	return body
}

// TestOpenAPIDocument verifies that linters find nothing in the server's OpenAPI document, and that generators make code
// of it that compiles.
func TestOpenAPIDocument(t *testing.T) {
	testlevel.Long(t)
	srv, _ := serve(t, holdfasttest.Open(t))
	dir := t.TempDir()
	file := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(file, get(t, srv.URL+"/api/v1/openapi.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("oapi-codegen", func(t *testing.T) { generates(t, file) })
	modules, err := packages(t)
	if err != nil {
		missing(t, "Redocly, Spectral and openapi-typescript", err)
		return
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(modules, "node_modules", ".bin", name), args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CI=true", "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
		return cmd
	}
	t.Run("redocly", func(t *testing.T) {
		if out := run(t, command("redocly", "lint", file, "--extends=recommended")); regexp.MustCompile(`\d+ warnings?`).MatchString(out) {
			t.Errorf("redocly found warnings:\n%s", out)
		}
	})
	t.Run("spectral", func(t *testing.T) {
		rules := filepath.Join(dir, "spectral.yaml")
		if err := os.WriteFile(rules, []byte("extends: spectral:oas\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, command("spectral", "lint", file, "--ruleset", rules, "--fail-severity", "hint"))
	})
	t.Run("openapi-typescript", func(t *testing.T) {
		types := filepath.Join(dir, "holdfast.d.ts")
		run(t, command("openapi-typescript", file, "-o", types))
		run(t, command("tsc", "--noEmit", "--strict", "--target", "es2022", types))
	})
}

// TestDashboardTypes verifies that TypeScript's compiler finds no mistake in the sources of the dashboard, which esbuild
// bundles without looking at types.
func TestDashboardTypes(t *testing.T) {
	testlevel.Long(t)
	modules, err := packages(t)
	if err != nil {
		missing(t, "TypeScript", err)
		return
	}
	sources, err := filepath.Abs("../../web/src")
	if err != nil {
		t.Fatal(err)
	}
	paths := make(map[string][]string)
	for _, name := range []string{"preact", "preact/*", "@preact/signals", "uplot"} {
		paths[name] = []string{filepath.Join(modules, "node_modules", name)}
	}
	compile(t, modules, filepath.Join(sources, "**", "*"), map[string]any{
		"skipLibCheck": true, "moduleResolution": "bundler", "jsx": "react-jsx", "jsxImportSource": "preact", "paths": paths,
	})
}

// TestSDKTypes verifies that TypeScript's compiler and Pyright find no mistake in the types of the SDKs, nor in programs that use them.
func TestSDKTypes(t *testing.T) {
	testlevel.Long(t)
	modules, err := packages(t)
	if err != nil {
		missing(t, "TypeScript and Pyright", err)
		return
	}
	sdk, err := filepath.Abs("../../sdk")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("pyright", func(t *testing.T) {
		dir := t.TempDir()
		from, err := filepath.Rel(dir, sdk) // Pyright ignores absolute paths
		if err != nil {
			t.Fatal(err)
		}
		config, err := json.Marshal(map[string]any{"include": []string{from + "/python/holdfast", from + "/testdata"}, "extraPaths": []string{from + "/python"}, "pythonVersion": "3.9"})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "pyrightconfig.json"), config, 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, exec.Command(filepath.Join(modules, "node_modules", ".bin", "pyright"), "--warnings", "--project", dir))
	})
	for _, resolution := range []string{"bundler", "nodenext"} {
		module := map[string]string{"bundler": "esnext", "nodenext": "nodenext"}[resolution]
		compile(t, modules, filepath.Join(sdk, "testdata", "usage.ts"), map[string]any{
			"module": module, "moduleResolution": resolution, "paths": map[string][]string{"@holdfast/client": {filepath.Join(sdk, "typescript", "index.d.ts")}},
		})
	}
}

// compile checks sources with TypeScript's compiler, with strict and other options.
func compile(t *testing.T, modules, sources string, options map[string]any) {
	t.Helper()
	all := map[string]any{
		"noEmit": true, "strict": true, "noUnusedLocals": true, "noUnusedParameters": true, "noImplicitOverride": true,
		"target": "es2022", "lib": []string{"ES2023", "DOM", "DOM.Iterable"}, "module": "esnext", "types": []string{},
	}
	maps.Copy(all, options)
	config, err := json.Marshal(map[string]any{"include": []string{sources}, "compilerOptions": all})
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(t.TempDir(), "tsconfig.json")
	if err := os.WriteFile(project, config, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, exec.Command(filepath.Join(modules, "node_modules", ".bin", "tsc"), "--project", project))
}

// generates generates a client in Go and compiles it.
func generates(t *testing.T, document string) {
	dir := t.TempDir()
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		return cmd
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module generated\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := command("run", generator, "-version").CombinedOutput(); err != nil {
		missing(t, "oapi-codegen", fmt.Errorf("%w: %s", err, lastLine(out)))
		return
	}
	if out := run(t, command("run", generator, "-generate", "types,client", "-package", "generated", "-o", "client.go", document)); strings.Contains(strings.ToLower(out), "warn") {
		t.Errorf("oapi-codegen warns:\n%s", out)
	}
	if out, err := command("mod", "tidy").CombinedOutput(); err != nil {
		missing(t, "the library of oapi-codegen", fmt.Errorf("%w: %s", err, lastLine(out)))
		return
	}
	run(t, command("vet", "./..."))
}

// TestEventSource verifies that the npm package eventsource receives each event of the feed once, in order, although its
// connections break.
func TestEventSource(t *testing.T) {
	testlevel.Long(t)
	modules, err := packages(t)
	if err != nil {
		missing(t, "The npm package eventsource", err)
		return
	}
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		srv, c := serve(t, e)
		cmd := exec.Command("node", "testdata/eventsource.mjs")
		cmd.Env = append(os.Environ(), "NODE_MODULES="+modules+"/", "FEED="+srv.URL+"/api/v1/events")
		var problems bytes.Buffer
		cmd.Stderr = &problems
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := make(chan string)
		go func() {
			defer close(lines)
			for s := bufio.NewScanner(out); s.Scan(); {
				lines <- s.Text()
			}
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			for range lines {
			}
			_ = cmd.Wait()
		})
		const rounds, each = 3, 10
		seen := 0
		for round := range rounds {
			events := make([]wire.NewEvent, each)
			for i := range events {
				events[i] = wire.NewEvent{Name: "paid"}
			}
			if _, err := c.AppendEvents(t.Context(), "orders", wire.Append{Events: events}, client.Key(fmt.Sprint("round-", round))); err != nil {
				t.Fatal(err)
			}
			for opened := false; seen < each*(round+1); {
				var line string
				select {
				case line = <-lines:
				case <-time.After(time.Minute):
				}
				switch {
				case line == "":
					t.Fatalf("round %d: the reader ended, or received nothing for a minute: %s", round, &problems)
				case line == "open" && !opened:
					opened = true
				case line == fmt.Sprint(seen):
					seen++
				default:
					t.Fatalf("round %d: the reader printed %q, want %d", round, line, seen)
				}
			}
			srv.CloseClientConnections()
		}
	})
}

// TestStandardWebhooks verifies that the npm package standardwebhooks accepts the signature of a message, and refuses the
// message with a changed body.
func TestStandardWebhooks(t *testing.T) {
	testlevel.Long(t)
	modules, err := packages(t)
	if err != nil {
		missing(t, "The npm package standardwebhooks", err)
		return
	}
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		_, c := serve(t, e)
		type message struct {
			Headers map[string]string `json:"headers"`
			Body    string            `json:"body"`
		}
		received := make(chan message, 10)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			m := message{map[string]string{}, string(body)}
			for name := range r.Header {
				m.Headers[strings.ToLower(name)] = r.Header.Get(name)
			}
			received <- m
		}))
		t.Cleanup(receiver.Close)
		hook, err := c.CreateWebhook(t.Context(), wire.NewWebhook{URL: receiver.URL, Events: []string{"paid"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.AppendEvents(t.Context(), "orders", wire.Append{Events: []wire.NewEvent{{Name: "paid", Data: []byte(`{"cents":100}`)}}}); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(<-received)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "message.json")
		if err := os.WriteFile(file, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("node", "testdata/webhook.mjs")
		cmd.Env = append(os.Environ(), "NODE_MODULES="+modules+"/", "MESSAGE="+file, "SECRET="+hook.Secret)
		if got, want := run(t, cmd), "paid\nWebhookVerificationError\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestPromtool verifies that promtool finds nothing in the alert rules, and in the metrics of a server that has worked. The tests
// of package httpapi fire the alerts.
func TestPromtool(t *testing.T) {
	testlevel.Long(t)
	promtool, err := pgtest.Command(t.Context(), "promtool", "prometheus")
	if err != nil {
		missing(t, "promtool", err)
		return
	}
	run(t, exec.Command(promtool, "check", "rules", "../../deploy/prometheus/alerts.yaml"))
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		srv, c := serve(t, e)
		if _, err := c.AppendEvents(t.Context(), "orders", wire.Append{Events: []wire.NewEvent{{Name: "paid"}}}); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = bytes.NewReader(get(t, srv.URL+"/metrics"))
		if out := run(t, cmd); out != "" {
			t.Errorf("promtool reports:\n%s", out)
		}
	})
}
