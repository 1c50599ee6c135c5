package docs_test

import (
	"log"
	"os"
)

// tempFolder enters an empty folder, so that an example starts with an empty database. The returned function leaves it.
func tempFolder() (leave func()) {
	was, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "holdfast")
	if err == nil {
		err = os.Chdir(folder)
	}
	if err != nil {
		log.Fatal(err)
	}
	return func() {
		if err := os.Chdir(was); err != nil {
			log.Fatal(err)
		}
		_ = os.RemoveAll(folder)
	}
}
