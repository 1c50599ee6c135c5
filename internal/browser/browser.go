// Package browser opens web pages in Chromium for tests.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(browser.Main(m)) }
//
//	func TestTitle(t *testing.T) {
//		p, ok := browser.Open(t)
//		if !ok {
//			return
//		}
//		p.Navigate(server.URL)
//		p.Click("#save")
//		p.Wait(`document.title === "saved"`, 10*time.Second)
//	}
//
// All pages of a test program share one browser, which does not reach beyond this machine. If no browser is installed and
// none can be, [Open] reports a note.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/pgtest"
)

// EnvPath is the environment variable with the path of the browser to use instead of an installed one.
const EnvPath = "HOLDFAST_CHROMIUM"

// callLimit limits each call of the browser, and its start and end.
const callLimit = time.Minute

// errMissing is returned when there is no browser and none can be installed.
var errMissing = errors.New("no browser")

// find returns the path of a browser. If there is none, it installs Debian's, if it may.
var find = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(EnvPath); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	path, err := pgtest.Command(context.Background(), "chromium", "chromium")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errMissing, err)
	}
	return path, nil
})

// shared is the browser of this process. It ends with its last user.
var shared struct {
	mu      sync.Mutex
	users   int
	process *process
}

// Main makes the browser stay open between tests, and ends it after all of them. Use it in TestMain.
func Main(m interface{ Run() int }) interface{ Run() int } { return program{m} }

type program struct{ m interface{ Run() int } }

func (p program) Run() int {
	shared.mu.Lock()
	shared.users++
	shared.mu.Unlock()
	defer release()
	return p.m.Run()
}

// acquire returns the browser of this process, and starts it if it does not run. The caller calls [release].
func acquire() (*process, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.process == nil || shared.process.ctx.Err() != nil {
		path, err := find()
		if err != nil {
			return nil, err
		}
		if shared.process, err = start(path); err != nil {
			return nil, fmt.Errorf("start %s: %w", path, err)
		}
	}
	shared.users++
	return shared.process, nil
}

func release() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.users--; shared.users == 0 && shared.process != nil {
		shared.process.close()
		shared.process = nil
	}
}

// process is a browser that obeys commands of the DevTools protocol, which are JSON that ends with a zero byte. It ends when
// the pipe for commands closes, so it also ends when this process crashes.
type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ctx    context.Context // ends with the browser

	writing  sync.Mutex
	commands *os.File

	mu       sync.Mutex
	calls    int
	waiting  map[int]chan message
	sessions map[string]*Page
}

// message is a command, its response, or an event of a session.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *refusal        `json:"error,omitempty"`
}

// refusal is the browser's error in response to a command.
type refusal struct {
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Message }

// runner runs the browser with a new profile, which it deletes in the end, also when the test program has crashed. Processes of the browser that
// outlive it for a moment may still write there meanwhile.
const runner = `HOME=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-browser.XXXXXX") && export HOME || exit
"$@" --user-data-dir="$HOME" &
trap : INT
trap "kill -9 $!" TERM
wait $!
code=$?
left=50
until rm -rf "$HOME" 2>/dev/null && ! [ -e "$HOME" ] || [ $left -eq 0 ]; do
	sleep 0.1
	left=$((left - 1))
done
exit $code`

func start(path string) (*process, error) {
	fromUs, commands, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, toUs, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, fromUs.Close(), commands.Close())
	}
	b := &process{commands: commands, waiting: map[int]chan message{}, sessions: map[string]*Page{}}
	b.cmd = exec.Command("sh", append([]string{"-c", runner, "sh", path}, arguments()...)...)
	b.cmd.ExtraFiles = []*os.File{fromUs, toUs} // files 3 and 4
	b.cmd.Stderr, b.cmd.WaitDelay = &b.stderr, 5*time.Second
	err = b.cmd.Start()
	_, _ = fromUs.Close(), toUs.Close() // only the browser's remain
	if err != nil {
		return nil, errors.Join(err, commands.Close(), answers.Close())
	}
	ctx, end := context.WithCancelCause(context.Background())
	b.ctx = ctx
	go b.read(answers, end)
	if err := b.call("", "Browser.getVersion", nil, nil); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func arguments() []string {
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--window-size=1280,800",
		"--no-first-run", "--no-default-browser-check", "--disable-gpu", "--disable-dev-shm-usage", "--disable-breakpad",
		"--disable-extensions", "--disable-component-update", "--disable-sync", "--disable-background-networking",
		"--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-background-timer-throttling",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // the sandbox refuses to run as root
	}
	return args
}

// close ends the browser and waits for it.
func (b *process) close() {
	_ = b.commands.Close()
	select {
	case <-b.ctx.Done():
	case <-time.After(callLimit):
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
		<-b.ctx.Done()
	}
}

// read passes on responses and events until the browser ends.
func (b *process) read(answers *os.File, end context.CancelCauseFunc) {
	defer answers.Close()
	var cause error // none if the browser has closed its end
	for in := bufio.NewReader(answers); ; {
		line, err := in.ReadBytes(0)
		if err != nil {
			break
		}
		var m message
		if err := json.Unmarshal(line[:len(line)-1], &m); err != nil {
			cause = fmt.Errorf("read a message of the browser: %w", err)
			break
		}
		b.mu.Lock()
		waiting, page := b.waiting[m.ID], b.sessions[m.Session]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case waiting != nil:
			waiting <- m
		case page != nil && m.Method != "":
			page.event(m)
		}
	}
	_ = b.commands.Close()
	err := errors.Join(cause, b.cmd.Wait())
	text := strings.TrimSpace(b.stderr.String())
	end(fmt.Errorf("the browser ended (%v): %s", err, text[strings.LastIndexByte(text, '\n')+1:]))
}

// follow passes the events of a session to a page.
func (b *process) follow(session string, p *Page) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[session] = p
}

// forget ends [process.follow] for all sessions of a page.
func (b *process) forget(p *Page) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.sessions, func(_ string, to *Page) bool { return to == p })
}

// send sends a command and returns the channel of its response. If the command cannot be written, the browser is ending.
func (b *process) send(session, method string, args params) <-chan message {
	response := make(chan message, 1)
	b.mu.Lock()
	b.calls++
	m := message{ID: b.calls, Session: session, Method: method}
	b.waiting[m.ID] = response
	b.mu.Unlock()
	var err error
	if m.Params, err = json.Marshal(args); err != nil {
		panic(err) // a mistake in this package
	}
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	_, _ = b.commands.Write(append(line, 0))
	return response
}

// call sends a command and waits for its response, whose result it decodes if into is not nil.
func (b *process) call(session, method string, args params, into any) error {
	if err := b.await(b.send(session, method, args), into, callLimit); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

func (b *process) await(response <-chan message, into any, limit time.Duration) error {
	select {
	case m := <-response:
		if m.Error != nil {
			return m.Error
		}
		if into == nil {
			return nil
		}
		return json.Unmarshal(m.Result, into)
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	case <-time.After(limit):
		return fmt.Errorf("no response in %v", limit)
	}
}
