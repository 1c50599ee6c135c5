package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/bench/peers/peer"
)

// backlogTime is how long a product works on a backlog: River commits completions up to 250 ms later, which would
// distort a shorter time.
const backlogTime = 2 * time.Second

// product is the program of another product, which runs as a process of its own.
type product struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	hello peer.Hello
}

// addPeers builds and starts the programs of other products. One that cannot be built, because its
// modules are out of reach, is not measured.
func (p *place) addPeers(ctx context.Context, c config, url string, names ...string) {
	for _, name := range names {
		if c.peers == "" || !c.systems.MatchString(name) {
			continue
		}
		q, err := startProduct(ctx, filepath.Join(c.peers, name), name, url)
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s is not measured: %s\n", name, err)
			continue
		}
		fmt.Printf("%s on %s: %s\n", name, p.store, q.hello.Version)
		p.finally(q.close)
		p.systems = append(p.systems, named{name: name, peer: q})
	}
}

// startProduct builds the program in a folder, and returns when it is ready.
func startProduct(ctx context.Context, folder, name, url string) (*product, error) {
	dir, err := os.MkdirTemp("", "bench-"+name)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the program has begun by then
	program := filepath.Join(dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-C", folder, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	q := &product{name: name, cmd: exec.Command(program, "-db", url)}
	q.cmd.Stderr = os.Stderr
	if q.in, err = q.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := q.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := q.cmd.Start(); err != nil {
		return nil, err
	}
	q.out = bufio.NewReader(stdout)
	if err := q.read(&q.hello); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

// close ends the input, at which the program ends.
func (q *product) close() {
	_ = q.in.Close()
	_ = q.cmd.Wait()
}

func (q *product) read(into any) error {
	line, err := q.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s ended: %w", q.name, err)
	}
	return json.Unmarshal(line, into)
}

// ask lets the program do a slice, and returns its response.
func (q *product) ask(t peer.Turn) (d peer.Done, err error) {
	line, err := json.Marshal(t)
	if err != nil {
		return d, err
	}
	if _, err := q.in.Write(append(line, '\n')); err != nil {
		return d, err
	}
	if err = q.read(&d); err == nil && d.Error != "" {
		err = errors.New(d.Error)
	}
	return d, err
}

// open returns the slices of a workload, if the program has it.
func (q *product) open(workload string) slicer {
	if !slices.Contains(q.hello.Workloads, workload) {
		return nil
	}
	var p pace
	return func(_ context.Context, t sliceSize) (slice, error) {
		_, items := p.next(sliceSize{t.clients, max(t.long, backlogTime)})
		ask := peer.Turn{Workload: workload, Clients: t.clients, Long: t.long, Items: items, Prepare: true}
		_, err := q.ask(ask)
		return func() (sample, error) {
			ask.Prepare = false
			d, err := q.ask(ask)
			if err == nil && d.Took <= 0 {
				err = fmt.Errorf("the peer reported an impossible duration for a slice: %s", d.Took)
			}
			s := sample{units: d.Units, took: d.Took, latencies: d.Latencies, cpu: d.CPU}
			p.perSecond = s.rate()
			return s, err
		}, err
	}
}
