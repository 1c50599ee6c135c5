// Package docs has the programs that the pages in docs show. Its tests run them.
package docs
