// Package docs has the pages for users as files, which the program serves at /docs.
package docs

import "embed"

// Files are the pages, and the schemas for editors. Decisions and pictures are not among them.
//
//go:embed *.md *.json how-to runbooks
var Files embed.FS
