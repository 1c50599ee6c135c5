package pgtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Packages returns a directory with the npm packages of a package.json, installed once per version of that file.
func Packages(ctx context.Context, list []byte) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "holdfast", fmt.Sprintf("npm-%x", sha256.Sum256(list))[:20])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	npm, err := Command(ctx, "npm", "npm")
	if err != nil {
		return "", err
	}
	var major int
	if out, err := exec.Command("node", "--version").Output(); err != nil {
		return "", err
	} else if _, err := fmt.Sscanf(string(out), "v%d.", &major); err != nil || major < 20 {
		return "", fmt.Errorf("they need Node 20 or later, and this is %s", bytes.TrimSpace(out))
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	if err := os.WriteFile(filepath.Join(made, "package.json"), list, 0o644); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
	install.Dir = made
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, lastLine(out))
	}
	if err := os.Rename(made, dir); err != nil { // another process may have been faster
		_, err = os.Stat(dir)
		return dir, err
	}
	return dir, nil
}
