package matrix

import (
	"encoding/json"
	"os"
	"sync"
)

// ResultsVariable names the file that the results of a run are appended to, one
// JSON object a line.
const ResultsVariable = "CARISMA_MATRIX"

// Result says that something worked.
type Result struct {
	Peer string // vsomeip, pysomeip, ...
	Role Role   // what the peer did
	What What
	Way  string // "UDP IPv4": how, where there is more than one
	Test string // which test showed it
}

// Role is what a program does.
type Role string

// The roles.
const (
	Serve Role = "serve"
	Use   Role = "use"
)

// Other is the role of the other side.
func (r Role) Other() Role {
	if r == Serve {
		return Use
	}
	return Serve
}

var writing sync.Mutex

// Record appends a result to the file of the run, if it has one.
func Record(r Result) error {
	file := os.Getenv(ResultsVariable)
	if file == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	writing.Lock()
	defer writing.Unlock()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
