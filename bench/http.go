package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

// openHTTP serves the HTTP API of an engine of its own on loopback, as "holdfast serve" does, and
// calls it through the client with an API key; if keyed, each call also has an idempotency key of its own. The
// hand-written SQL is called without HTTP.
func openHTTP(prefix string, keyed bool) func(context.Context, system) (slicer, func(), error) {
	return func(ctx context.Context, s system) (slicer, func(), error) {
		switch s := s.(type) {
		case holdfastSystem:
			c, end, err := s.serve(ctx)
			if err != nil {
				return nil, nil, err
			}
			return callers(appends(prefix, httpAppend(c, prefix, keyed))), end, nil
		case sqlSystem:
			return callers(appends(prefix, s.append)), nil, nil
		}
		return nil, nil, nil // the system does not have this workload
	}
}

func httpAppend(c *client.Client, prefix string, keyed bool) func(context.Context, string, int64) error {
	var sent atomic.Int64
	return func(ctx context.Context, stream string, want int64) error {
		var o []client.Option
		if keyed {
			o = append(o, client.Key(fmt.Sprintf("%s-%d", prefix, sent.Add(1))))
		}
		_, err := c.AppendEvents(ctx, stream, wire.Append{ExpectedVersion: &want, Events: []wire.NewEvent{{Name: "paid", Data: []byte(payload)}}}, o...)
		return err
	}
}

// serve opens an engine on the same database and serves its API until end is called.
func (e holdfastSystem) serve(ctx context.Context) (c *client.Client, end func(), err error) {
	api, open := httpapi.New(httpapi.Options{}), httpapi.New(httpapi.Options{NoKeys: true})
	hf, err := e.open(ctx, api, open)
	if err != nil {
		return nil, nil, err
	}
	key, err := apiKey(ctx, open)
	if err != nil {
		_ = hf.Close()
		return nil, nil, err
	}
	url, stop, err := listen(ctx, api)
	if err != nil {
		_ = hf.Close()
		return nil, nil, err
	}
	if c, err = client.New(url, client.Options{APIKey: key}); err != nil {
		stop()
		_ = hf.Close()
		return nil, nil, err
	}
	stopEngine := background(ctx, hf)
	return c, func() {
		c.Close()
		stop()
		stopEngine()
		_ = hf.Close()
	}, nil
}

// apiKey creates a key through an API that needs none.
func apiKey(ctx context.Context, open *httpapi.API) (string, error) {
	url, stop, err := listen(ctx, open)
	if err != nil {
		return "", err
	}
	defer stop()
	c, err := client.New(url, client.Options{})
	if err != nil {
		return "", err
	}
	defer c.Close()
	made, err := c.CreateKey(ctx, wire.NewKey{Name: "bench", Role: "operate"})
	return made.Secret, err
}

func listen(ctx context.Context, api *httpapi.API) (url string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, ln, time.Second) }()
	return "http://" + ln.Addr().String(), func() {
		cancel()
		<-done
	}, nil
}
