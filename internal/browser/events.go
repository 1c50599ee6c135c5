package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// watch turns on the events of a session, and of the frames and workers that it will have.
func (p *Page) watch(session string) {
	for _, domain := range []string{"Runtime", "Log", "Network"} {
		p.b.send(session, domain+".enable", nil)
	}
	p.b.send(session, "Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
	p.b.send(session, "Runtime.runIfWaitingForDebugger", nil)
}

// event records what an event says. It must not wait for a response, because it is called by the reader of responses.
func (p *Page) event(m message) {
	var e struct {
		URL, Message, Payload, SessionID, Type string
		Request                                struct{ URL string }
		Entry                                  struct{ Level, Text, URL string }
		ExceptionDetails                       exception
		Args                                   []struct {
			Value       any
			Description string
		}
	}
	if err := json.Unmarshal(m.Params, &e); err != nil {
		e.Message, m.Method = err.Error(), "the event "+m.Method
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m.Method {
	case "Network.requestWillBeSent":
		if !strings.HasPrefix(e.Request.URL, "data:") && !strings.HasPrefix(e.Request.URL, "blob:") {
			p.requests = append(p.requests, e.Request.URL)
		}
	case "Network.webSocketCreated":
		p.requests = append(p.requests, e.URL)
	case "Log.entryAdded":
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			p.problems = append(p.problems, strings.TrimSpace(e.Entry.Text+" "+e.Entry.URL))
		}
	case "Runtime.consoleAPICalled":
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			text := "console." + e.Type
			for _, arg := range e.Args {
				if arg.Description == "" {
					arg.Description = fmt.Sprint(arg.Value)
				}
				text += " " + arg.Description
			}
			p.problems = append(p.problems, text)
		}
	case "Runtime.exceptionThrown":
		p.problems = append(p.problems, e.ExceptionDetails.Error())
	case "Runtime.bindingCalled":
		var durations []float64
		_ = json.Unmarshal([]byte(e.Payload), &durations)
		for _, ms := range durations {
			p.tasks = append(p.tasks, time.Duration(ms*float64(time.Millisecond)))
		}
	case "Tracing.dataCollected":
		var part struct{ Value []traced }
		_ = json.Unmarshal(m.Params, &part)
		p.trace = append(p.trace, part.Value...)
	case "Tracing.tracingComplete":
		p.complete = true
	case "Page.javascriptDialogOpening":
		p.problems = append(p.problems, "the page opened a dialog: "+e.Message)
		go p.b.send(p.session, "Page.handleJavaScriptDialog", params{"accept": false})
	case "Target.attachedToTarget":
		p.b.follow(e.SessionID, p)
		go p.watch(e.SessionID)
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// sync waits for the events of what the page has done so far.
func (p *Page) sync() {
	p.t.Helper()
	p.wait("the page's events", "(globalThis.reportLongTasks?.(), true)", callLimit, nil)
}

// Requests returns the URLs that the page, its frames and its workers have requested since it was opened, also those of
// requests that failed or that its content security policy refused.
func (p *Page) Requests() []string {
	p.t.Helper()
	p.sync()
	return recorded(p, &p.requests)
}

// Problems returns the errors and warnings of the page's console since it was opened: also exceptions, violations of the
// content security policy, requests that failed, and dialogs.
func (p *Page) Problems() []string {
	p.t.Helper()
	p.sync()
	return recorded(p, &p.problems)
}

// LongTasks returns the durations of the tasks since the page was opened that occupied its main thread for more than 50 ms.
func (p *Page) LongTasks() []time.Duration {
	p.t.Helper()
	p.sync()
	return recorded(p, &p.tasks)
}

// traced is an event of a trace. Times are in microseconds.
type traced struct {
	Name, Ph string
	Pid, Tid int
	Tdur     float64
}

// traceConfig is for the tasks of threads, and the marks of pages.
var traceConfig = params{"includedCategories": []string{"disabled-by-default-devtools.timeline", "blink.user_timing"}, "excludedCategories": []string{"*"}}

// Busy calls f, and returns the CPU time of the longest task of the page's main thread meanwhile, and of all of them. Unlike
// [Page.LongTasks] it leaves out the time in which the machine was busy with something else. If f loads a document, it counts
// from there only.
func (p *Page) Busy(f func()) (longest, all time.Duration) {
	p.t.Helper()
	p.mu.Lock()
	p.trace, p.complete = nil, false
	p.mu.Unlock()
	p.do("Tracing.start", params{"transferMode": "ReportEvents", "traceConfig": traceConfig})
	f()
	const mark = "this is the thread"
	p.Eval(`(performance.mark("`+mark+`"), true)`, nil)
	p.do("Tracing.end", nil)
	for end := time.After(callLimit); ; {
		p.mu.Lock()
		complete := p.complete
		p.mu.Unlock()
		if complete {
			break
		}
		select {
		case <-p.changed:
		case <-end:
			p.t.Fatalf("the trace was not complete within %v", callLimit)
		}
	}
	trace := recorded(p, &p.trace)
	i := slices.IndexFunc(trace, func(x traced) bool { return x.Name == mark })
	if i < 0 {
		p.t.Fatal("the trace does not have the page's mark")
	}
	for _, x := range trace {
		if x.Name == "RunTask" && x.Pid == trace[i].Pid && x.Tid == trace[i].Tid {
			took := time.Duration(x.Tdur * float64(time.Microsecond))
			longest, all = max(longest, took), all+took
		}
	}
	if all == 0 {
		p.t.Fatal("the trace has no tasks of the page")
	}
	return longest, all
}

func recorded[T any](p *Page, list *[]T) []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(*list)
}
