//go:build !race

package holdfasttest

const raceDetector = false
