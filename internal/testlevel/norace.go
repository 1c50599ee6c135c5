//go:build !race

package testlevel

const raced = false
