package wire_test

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-go/holdfast/wire"
)

// The types are the JSON documents of the API. User data passes through unchanged.
func Example() {
	expected := int64(-1)
	body, err := json.Marshal(wire.Append{ExpectedVersion: &expected, Events: []wire.NewEvent{{Name: "placed", Data: json.RawMessage(`{"cents":100}`)}}})
	fmt.Println(string(body), err)

	var done wire.Appended
	err = json.Unmarshal([]byte(`{"stream": "order-7", "lastVersion": 0, "events": []}`), &done)
	fmt.Println(done.Stream, done.LastVersion, err)
	// Output:
	// {"expectedVersion":-1,"events":[{"name":"placed","data":{"cents":100}}]} <nil>
	// order-7 0 <nil>
}
