// Carries out calls with franz-go: lines of JSON in, lines of JSON out, as
// compat/scenarios/remote/process.py describes them.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

const library = "github.com/twmb/franz-go"

// No call takes longer, whatever the broker does.
const patience = 30 * time.Second

// A subject is what calls are made on: the library itself, or one of its objects.
type subject interface {
	// call carries out one call; what it gives is written as JSON.
	call(operation string, with arguments) (any, error)
}

// A consumer tells, with each answer, what its group gave and took away since the last one.
type eventful interface {
	events() []event
}

type request struct {
	ID   int       `json:"id"`
	On   int       `json:"on"`
	Do   string    `json:"do"`
	With arguments `json:"with"`
}

type answer struct {
	ID     int     `json:"id"`
	Gives  any     `json:"gives"`
	Events []event `json:"events,omitempty"`
	failure
}

type driver struct {
	output   *json.Encoder
	guard    sync.Mutex
	subjects []subject
}

func main() {
	d := &driver{output: json.NewEncoder(os.Stdout)}
	d.subjects = []subject{d}
	d.write(map[string]string{"client": "franz-go", "version": version()})
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

func version() string {
	built, _ := debug.ReadBuildInfo()
	for _, module := range built.Deps {
		if module.Path == library {
			return module.Version[1:]
		}
	}
	panic("built without " + library)
}

func (d *driver) answer(asked request) {
	d.guard.Lock()
	target := d.subjects[asked.On]
	d.guard.Unlock()
	given, err := target.call(asked.Do, asked.With)
	told := answer{ID: asked.ID, Gives: given}
	if err != nil {
		told.Gives, told.failure = nil, failureOf(err)
	}
	if consumer, is := target.(eventful); is {
		told.Events = consumer.events()
	}
	d.write(told)
}

func (d *driver) write(line any) {
	d.guard.Lock()
	defer d.guard.Unlock()
	if err := d.output.Encode(line); err != nil {
		panic(err)
	}
}

func (d *driver) call(operation string, with arguments) (any, error) {
	opened, err := open(operation, with)
	if err != nil {
		return nil, err
	}
	d.guard.Lock()
	defer d.guard.Unlock()
	d.subjects = append(d.subjects, opened)
	return len(d.subjects) - 1, nil
}

func open(operation string, with arguments) (subject, error) {
	switch operation {
	case "producer":
		return newProducer(with)
	case "transactional_producer":
		return newTransactionalProducer(with)
	case "pipeline":
		return newPipeline(with)
	case "consumer":
		return newConsumer(with)
	case "share_consumer":
		return &shareConsumer{with: with}, nil
	case "admin":
		return newAdmin(with)
	}
	return nil, unknown(operation)
}

func unknown(operation string) error {
	return fmt.Errorf("no such operation: %s", operation)
}
