package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// Verifies that the plot is well-formed, draws a line for each comparison, and has both color schemes.
func TestPlot(t *testing.T) {
	all := []judgement{
		{Goal: "postgres/run-3/1", Of: peerDBOS, Measure: p50, Got: 0.5, Low: 0.4, High: 0.7, Bound: 0.6, Met: true, Measured: true},
		{Goal: "a<b", Of: sqlOne, Measure: rate, Got: 12, Low: 9, High: 14, Bound: 15, Measured: true},
		{Goal: "postgres/wake-up/1", Measure: p50Millis, Got: 12, Bound: 25, Measured: true},
		{Goal: "never", Of: sqlOne},
	}
	svg := plot(all)
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	if n := strings.Count(svg, "<circle"); n != 2 {
		t.Errorf("got %d dots, want 2", n)
	}
	for _, want := range []string{"prefers-color-scheme: dark", "a&lt;b", ">2.00<", "12.00"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the plot has no %q", want)
		}
	}
}
