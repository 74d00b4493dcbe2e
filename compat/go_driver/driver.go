// Package driver is what drivers of Go's clients share: lines of JSON in, lines of JSON out, as
// compat/scenarios/remote/process.py describes them.
package driver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Patience is the most that a call takes, whatever the broker does.
const Patience = 30 * time.Second

// Times and sizes as compat/scenarios/python/client.py has them.
const (
	Session   = 6 * time.Second
	Heartbeat = 200 * time.Millisecond
	FetchWait = 100 * time.Millisecond
)

// A Subject is what calls are made on: the library itself, or one of its objects.
type Subject interface {
	// Call carries out one call; what it gives is written as JSON.
	Call(operation string, with Arguments) (any, error)
}

// An Eventful subject tells, with each answer, what its group gave and took away since the last one.
type Eventful interface {
	Events() []Event
}

// Open makes an object of the library, by the operation that asks for it.
type Open func(operation string, with Arguments) (Subject, error)

type request struct {
	ID   int       `json:"id"`
	On   int       `json:"on"`
	Do   string    `json:"do"`
	With Arguments `json:"with"`
}

type answer struct {
	ID     int     `json:"id"`
	Gives  any     `json:"gives"`
	Events []Event `json:"events,omitempty"`
	failure
}

// Refusal gives Kafka's number and text of an error that the broker answered, and 0 of any other.
type Refusal func(err error) (int16, string)

type driver struct {
	open     Open
	refusal  Refusal
	output   *json.Encoder
	guard    sync.Mutex
	subjects []Subject
}

// Serve carries out calls until the input ends.  The module is that of the library.
func Serve(client, module string, open Open, refusal Refusal) {
	d := &driver{open: open, refusal: refusal, output: json.NewEncoder(os.Stdout)}
	d.subjects = []Subject{d}
	serving = d
	d.write(map[string]string{"client": client, "version": versionOf(module)})
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		var asked request
		if err == nil {
			err = json.Unmarshal(line, &asked)
		}
		if err != nil {
			panic(err)
		}
		go d.answer(asked)
	}
}

var serving *driver

// Opened gives the object of a number.
func Opened(number int) Subject {
	serving.guard.Lock()
	defer serving.guard.Unlock()
	return serving.subjects[number]
}

func versionOf(module string) string {
	built, _ := debug.ReadBuildInfo()
	for _, each := range built.Deps {
		if each.Path == module {
			return strings.TrimPrefix(each.Version, "v")
		}
	}
	panic("built without " + module)
}

func (d *driver) answer(asked request) {
	d.guard.Lock()
	target := d.subjects[asked.On]
	d.guard.Unlock()
	given, err := carryOut(target, asked)
	told := answer{ID: asked.ID, Gives: given}
	if err != nil {
		told.Gives, told.failure = nil, d.failureOf(err)
	}
	if consumer, is := target.(Eventful); is {
		told.Events = consumer.Events()
	}
	d.write(told)
}

// carryOut makes a failure of one call out of a panic, which would end all others, too.
func carryOut(target Subject, asked request) (given any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("%s panicked: %v", asked.Do, panicked)
		}
	}()
	return target.Call(asked.Do, asked.With)
}

func (d *driver) write(line any) {
	d.guard.Lock()
	defer d.guard.Unlock()
	if err := d.output.Encode(line); err != nil {
		panic(err)
	}
}

// Call opens an object, and gives its number.
func (d *driver) Call(operation string, with Arguments) (any, error) {
	opened, err := d.open(operation, with)
	if err != nil {
		return nil, err
	}
	d.guard.Lock()
	defer d.guard.Unlock()
	d.subjects = append(d.subjects, opened)
	return len(d.subjects) - 1, nil
}

// Unknown is the error of an operation that a subject does not know.
func Unknown(operation string) error {
	return fmt.Errorf("no such operation: %s", operation)
}
