package cli

import (
	"strings"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/s3"
)

// store returns the artifact store that --artifacts names, or nil for none.
func (f databaseFlags) store(where string) (batch.ArtifactStore, error) {
	if where == "" {
		path, ok := f.sqlitePath()
		if !ok {
			return nil, nil // with PostgreSQL each node would have its own folder
		}
		return batch.FileStore(path + ".artifacts")
	}
	if where == "none" {
		return nil, nil
	}
	if folder, ok := strings.CutPrefix(where, "file:"); ok && folder != "" {
		return batch.FileStore(folder)
	}
	if strings.HasPrefix(where, "s3:") {
		c, err := s3.Parse(where)
		if err != nil {
			return nil, err
		}
		return s3.New(c)
	}
	return nil, misuse("--artifacts must be file:FOLDER, s3://BUCKET/FOLDER?endpoint=URL, or none")
}
