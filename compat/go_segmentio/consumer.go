package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	driver "ottla/compat/go_driver"
)

const (
	buffered          = 10_000
	fetchedBytes      = 10_000_000
	lookForPartitions = 5 * time.Second
)

// A received message is one of a reading, which may have been replaced since.
type received struct {
	message kafka.Message
	from    *reading
}

// A reading takes messages from one partition, until it is stopped.
type reading struct {
	reader  *kafka.Reader
	cancel  context.CancelFunc
	stopped bool
}

// A consumer reads partitions that it is assigned with a reader for each, or those of a member of a group.
// Calls come one after the other.
type consumer struct {
	with      driver.Arguments
	client    *kafka.Client
	transport *kafka.Transport
	readings  map[driver.Partition]*reading
	starts    map[driver.Partition]int64
	group     groupReader
	commits   []chan error

	messages chan received
	errors   chan error
	changed  chan struct{}

	guard     sync.Mutex
	positions map[driver.Partition]int64
}

// A groupReader takes messages from the partitions that a group gives it.
type groupReader interface {
	events() []driver.Event
	leave() error
}

var resets = map[string]int64{"earliest": kafka.FirstOffset, "latest": kafka.LastOffset}

func newConsumer(with driver.Arguments) (driver.Subject, error) {
	switch {
	case driver.Get[bool](with, "new_protocol"):
		return nil, driver.NotOffered("it does not know the consumer groups of KIP-848")
	case driver.Get[bool](with, "cooperative"):
		return nil, driver.NotOffered("it does not rebalance cooperatively")
	case driver.Get[string](with, "instance_id") != "":
		return nil, driver.NotOffered("its groups have no static members")
	case driver.Get[*bool](with, "may_create_topics") != nil:
		return nil, driver.NotOffered("its consumers do not say whether they create topics")
	}
	transport := newTransport()
	return &consumer{
		with:      with,
		client:    newClient(with, transport),
		transport: transport,
		readings:  make(map[driver.Partition]*reading),
		starts:    make(map[driver.Partition]int64),
		messages:  make(chan received, buffered),
		errors:    make(chan error, buffered),
		changed:   make(chan struct{}, 1),
		positions: make(map[driver.Partition]int64),
	}, nil
}

func (c *consumer) groupID() string { return driver.Get[string](c.with, "group") }

func (c *consumer) Events() []driver.Event {
	if c.group == nil {
		return nil
	}
	return c.group.events()
}

func (c *consumer) Call(operation string, with driver.Arguments) (any, error) {
	partitions := driver.Get[[]driver.Partition](with, "partitions")
	switch operation {
	case "subscribe":
		return nil, c.subscribe(with)
	case "assign":
		for _, each := range partitions {
			c.starts[each] = resets[driver.Get[string](c.with, "reset")]
		}
	case "seek":
		return nil, c.seek(driver.Get[int64](with, "offset"), driver.Get[driver.Partition](with, "partition"))
	case "seek_to_beginning":
		return nil, c.seek(kafka.FirstOffset, partitions...)
	case "seek_to_end":
		return nil, c.seek(kafka.LastOffset, partitions...)
	case "pause", "resume":
		return nil, driver.NotOffered("its readers do not pause")
	case "poll":
		wait := time.Duration(driver.Get[int](with, "wait_ms")) * time.Millisecond
		return c.poll(wait, driver.Get[int](with, "records_max"))
	case "position":
		c.guard.Lock()
		defer c.guard.Unlock()
		if position, known := c.positions[driver.Get[driver.Partition](with, "partition")]; known {
			return position, nil
		}
		return -1, nil
	case "close":
		return nil, c.close()
	default:
		return c.callOnOffsets(operation, with, partitions)
	}
	return nil, nil
}

func (c *consumer) subscribe(with driver.Arguments) (err error) {
	if driver.Get[*string](with, "pattern") != nil {
		return driver.NotOffered("its groups take no patterns")
	}
	topics := driver.Get[[]string](with, "topics")
	if driver.Get[bool](c.with, "auto_commit") {
		c.group = readAndCommit(c, topics)
		return nil
	}
	c.group, err = join(c, topics)
	return err
}

// start begins to read the partitions that are assigned and not read yet.
func (c *consumer) start() error {
	for at, offset := range c.starts {
		if c.readings[at] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		opened, err := c.open(at, offset)
		if err != nil {
			cancel()
			return err
		}
		from := &reading{reader: opened, cancel: cancel}
		c.readings[at] = from
		go c.read(ctx, from)
	}
	return nil
}

// open makes a reader of a partition, and notes where it starts.
func (c *consumer) open(at driver.Partition, offset int64) (*kafka.Reader, error) {
	if offset < 0 {
		found, err := c.find(at, offset)
		if err != nil {
			return nil, err
		}
		offset = found
	}
	config := c.readerConfig()
	config.Topic, config.Partition = at.Topic, int(at.Number)
	config.OffsetOutOfRangeError = true
	opened := kafka.NewReader(config)
	c.goOn(at, offset)
	return opened, opened.SetOffset(offset)
}

func (c *consumer) readerConfig() kafka.ReaderConfig {
	config := kafka.ReaderConfig{
		Brokers:  []string{address(c.with)},
		MinBytes: 1,
		MaxBytes: fetchedBytes,
		MaxWait:  driver.FetchWait,
	}
	if driver.Get[bool](c.with, "committed_only") {
		config.IsolationLevel = kafka.ReadCommitted
	}
	if size := driver.Get[*int](c.with, "fetch_bytes_max"); size != nil {
		config.MaxBytes = *size
	}
	return config
}

// read passes messages on until the context ends or the reader fails.  A broker that is late is asked again, as the
// reader does by itself once it has told.
func (c *consumer) read(ctx context.Context, from *reading) {
	for {
		message, err := from.reader.FetchMessage(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, kafka.OffsetOutOfRange) && driver.Get[string](c.with, "reset") != "none" {
			err = driver.NotOffered("it does not reset an offset that is out of range")
		}
		if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
			continue
		}
		if err != nil {
			c.errors <- err
			return
		}
		c.messages <- received{message, from}
	}
}

func (c *consumer) goOn(at driver.Partition, offset int64) {
	c.guard.Lock()
	defer c.guard.Unlock()
	c.positions[at] = offset
}

func (c *consumer) seek(offset int64, partitions ...driver.Partition) error {
	if c.group != nil {
		return driver.NotOffered("members of its groups cannot seek")
	}
	for _, each := range partitions {
		c.starts[each] = offset
		if from := c.readings[each]; from != nil {
			from.stopped = true
			from.cancel()
			delete(c.readings, each)
			if err := from.reader.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *consumer) poll(wait time.Duration, recordsMax int) ([]driver.TakenRecord, error) {
	if err := c.start(); err != nil {
		return nil, err
	}
	records := []driver.TakenRecord{}
	timeout := time.After(wait)
	for len(records) < recordsMax {
		select {
		case next := <-c.messages:
			if !next.from.stopped {
				records = append(records, c.take(next.message))
			}
			continue
		default:
		}
		if len(records) > 0 {
			break
		}
		select {
		case next := <-c.messages:
			if !next.from.stopped {
				records = append(records, c.take(next.message))
			}
		case err := <-c.errors:
			return nil, err
		case <-c.changed:
			return records, nil // with what the group gave or took away
		case <-timeout:
			return records, nil
		}
	}
	return records, nil
}

func (c *consumer) take(message kafka.Message) driver.TakenRecord {
	c.goOn(driver.At(message.Topic, int32(message.Partition)), message.Offset+1)
	headers := []driver.Header{}
	for _, each := range message.Headers {
		// The reader gives nil for what is empty; what is null is not sent.
		headers = append(headers, driver.Header{Name: each.Key, Value: append([]byte{}, each.Value...)})
	}
	return driver.TakenRecord{
		Topic:     message.Topic,
		Partition: int32(message.Partition),
		Offset:    message.Offset,
		Key:       message.Key,
		Value:     message.Value,
		Headers:   headers,
		Timestamp: message.Time.UnixMilli(),
	}
}

func (c *consumer) close() error {
	defer c.transport.CloseIdleConnections()
	var failed error
	for _, each := range c.readings {
		each.cancel()
		failed = errors.Join(failed, each.reader.Close())
	}
	if c.group != nil {
		failed = errors.Join(failed, c.group.leave())
	}
	return failed
}
