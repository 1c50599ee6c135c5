package s3_test

import (
	"fmt"

	"github.com/holdfast-go/holdfast/s3"
)

func ExampleParse() {
	c, err := s3.Parse("s3://invoices/artifacts?endpoint=https://s3.eu-central-1.amazonaws.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Bucket, c.Folder, c.Endpoint)

	_, err = s3.Parse("s3://ada:secret@invoices?endpoint=https://s3.eu-central-1.amazonaws.com")
	fmt.Println(err)
	// Output:
	// invoices artifacts https://s3.eu-central-1.amazonaws.com
	// VALIDATION_ERROR: the object store URL must not contain a user name or password: set the credentials separately
}
