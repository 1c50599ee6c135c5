package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// paper is a payment gateway and a mail server that write into a file. Like a real gateway, it honors idempotency keys: a
// second charge with the same key returns the receipt of the first.
type paper struct {
	file  string
	pause time.Duration // how long a charge takes
}

func (p paper) Charge(ctx context.Context, key string, cents int64) (string, error) {
	receipt, err := p.once(key, fmt.Sprintf("charged %d cents", cents))
	time.Sleep(p.pause) // time for a second click, or for a crash
	return receipt, err
}

func (p paper) Refund(_ context.Context, key, receipt string) error {
	_, err := p.once(key, "refunded "+receipt)
	return err
}

func (p paper) Mail(_ context.Context, key, to, text string) error {
	_, err := p.once(key, "mail to "+to+": "+text)
	return err
}

// once writes a line, unless there is one with the key, and returns the number of the line.
func (p paper) once(key, text string) (receipt string, err error) {
	file, err := os.OpenFile(p.file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	defer file.Close()
	lines := 0
	for scan := bufio.NewScanner(file); scan.Scan(); {
		if lines++; strings.HasPrefix(scan.Text(), key+" ") {
			fmt.Println("the same key again, nothing to do")
			return fmt.Sprint("R-", lines), nil
		}
	}
	fmt.Println(text)
	_, err = fmt.Fprintln(file, key, text)
	return fmt.Sprint("R-", lines+1), err
}
