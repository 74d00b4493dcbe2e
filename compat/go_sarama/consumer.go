package main

import (
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"

	driver "ottla/compat/go_driver"
)

const buffered = 10_000

// A received record is one of a reader, which may have been replaced since.
type received struct {
	message *sarama.ConsumerMessage
	from    *reader
}

// A reader takes records from one partition, until it is stopped.
type reader struct {
	partition sarama.PartitionConsumer
	stopped   bool
}

// A consumer reads partitions that it is assigned with a reader for each, or those of a member of a group.
// Calls come one after the other.
type consumer struct {
	with    driver.Arguments
	client  sarama.Client
	admin   sarama.ClusterAdmin
	reading sarama.Consumer
	readers map[driver.Partition]*reader
	starts  map[driver.Partition]int64
	member  *member
	commits []chan struct{}

	records chan received
	errors  chan error

	guard     sync.Mutex
	positions map[driver.Partition]int64
}

var resets = map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}

func newConsumer(with driver.Arguments) (driver.Subject, error) {
	if driver.Get[bool](with, "new_protocol") {
		return nil, driver.NotOffered("it does not know the consumer groups of KIP-848")
	}
	config := settings(with)
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = driver.FetchWait
	if reset, known := resets[driver.Get[string](with, "reset")]; known {
		config.Consumer.Offsets.Initial = reset
	}
	config.Consumer.Offsets.AutoCommit.Enable = driver.Get[bool](with, "auto_commit")
	config.Consumer.Group.InstanceId = driver.Get[string](with, "instance_id")
	config.Consumer.Group.Session.Timeout = driver.Session
	config.Consumer.Group.Heartbeat.Interval = driver.Heartbeat
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	if driver.Get[bool](with, "cooperative") {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
			sarama.NewBalanceStrategyCooperativeSticky(),
		}
	}
	if driver.Get[bool](with, "committed_only") {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	if size := driver.Get[*int32](with, "fetch_bytes_max"); size != nil {
		config.Consumer.Fetch.Default = *size
	}
	if age := driver.Get[*int](with, "metadata_age_ms"); age != nil {
		config.Metadata.RefreshFrequency = time.Duration(*age) * time.Millisecond
	}
	if may := driver.Get[*bool](with, "may_create_topics"); may != nil {
		config.Metadata.AllowAutoTopicCreation = *may
		config.Metadata.Retry.Max = 0
	}
	client, err := sarama.NewClient(addresses(with), config)
	if err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, err
	}
	reading, err := sarama.NewConsumerFromClient(client)
	return &consumer{
		with:      with,
		client:    client,
		admin:     admin,
		reading:   reading,
		readers:   make(map[driver.Partition]*reader),
		starts:    make(map[driver.Partition]int64),
		records:   make(chan received, buffered),
		errors:    make(chan error, buffered),
		positions: make(map[driver.Partition]int64),
	}, err
}

func (c *consumer) group() string { return driver.Get[string](c.with, "group") }

func (c *consumer) metadata() *sarama.ConsumerGroupMetadata { return c.member.metadata(c.group()) }

func (c *consumer) Events() []driver.Event {
	if c.member == nil {
		return nil
	}
	return c.member.events()
}

func (c *consumer) Call(operation string, with driver.Arguments) (any, error) {
	partitions := driver.Get[[]driver.Partition](with, "partitions")
	switch operation {
	case "subscribe":
		if driver.Get[*string](with, "pattern") != nil {
			return nil, driver.NotOffered("its groups take no patterns")
		}
		member, err := join(c, driver.Get[[]string](with, "topics"))
		c.member = member
		return nil, err
	case "assign":
		for _, each := range partitions {
			c.starts[each] = resets[driver.Get[string](c.with, "reset")]
		}
	case "seek":
		return nil, c.seek(driver.Get[int64](with, "offset"), driver.Get[driver.Partition](with, "partition"))
	case "seek_to_beginning":
		return nil, c.seek(sarama.OffsetOldest, partitions...)
	case "seek_to_end":
		return nil, c.seek(sarama.OffsetNewest, partitions...)
	case "pause":
		for _, each := range partitions {
			c.readers[each].partition.Pause()
		}
		time.Sleep(10 * driver.FetchWait) // what is being fetched still comes
	case "resume":
		for _, each := range partitions {
			c.readers[each].partition.Resume()
		}
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

// start begins to read the partitions that are assigned and not read yet.
func (c *consumer) start() error {
	for partition, offset := range c.starts {
		if c.readers[partition] != nil {
			continue
		}
		opened, err := c.reading.ConsumePartition(partition.Topic, partition.Number, offset)
		if errors.Is(err, sarama.ErrOffsetOutOfRange) && driver.Get[string](c.with, "reset") != "none" {
			return driver.NotOffered("it does not reset an offset that is out of range")
		}
		if err != nil {
			return err
		}
		if offset < 0 {
			if offset, err = c.client.GetOffset(partition.Topic, partition.Number, offset); err != nil {
				return err
			}
		}
		c.goOn(partition, offset)
		from := &reader{partition: opened}
		c.readers[partition] = from
		go func() {
			for message := range opened.Messages() {
				c.records <- received{message, from}
			}
		}()
		go func() {
			for err := range opened.Errors() {
				c.errors <- err.Err
			}
		}()
	}
	return nil
}

func (c *consumer) goOn(at driver.Partition, offset int64) {
	c.guard.Lock()
	defer c.guard.Unlock()
	c.positions[at] = offset
}

func (c *consumer) seek(offset int64, partitions ...driver.Partition) error {
	if c.member != nil {
		return driver.NotOffered("members of its groups cannot seek")
	}
	for _, each := range partitions {
		c.starts[each] = offset
		if from := c.readers[each]; from != nil {
			from.stopped = true
			from.partition.AsyncClose()
			delete(c.readers, each)
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
		case next := <-c.records:
			if next.from == nil || !next.from.stopped {
				records = append(records, c.take(next.message))
			}
			continue
		default:
		}
		if len(records) > 0 {
			break
		}
		select {
		case next := <-c.records:
			if next.from == nil || !next.from.stopped {
				records = append(records, c.take(next.message))
			}
		case err := <-c.errors:
			return nil, err
		case <-timeout:
			return records, nil
		}
	}
	return records, nil
}

func (c *consumer) take(message *sarama.ConsumerMessage) driver.TakenRecord {
	c.goOn(driver.At(message.Topic, message.Partition), message.Offset+1)
	if c.member != nil && driver.Get[bool](c.with, "auto_commit") {
		c.member.mark(driver.At(message.Topic, message.Partition), driver.Committed{Offset: message.Offset + 1})
	}
	headers := []driver.Header{}
	for _, each := range message.Headers {
		headers = append(headers, driver.Header{Name: string(each.Key), Value: each.Value})
	}
	return driver.TakenRecord{
		Topic:     message.Topic,
		Partition: message.Partition,
		Offset:    message.Offset,
		Key:       message.Key,
		Value:     message.Value,
		Headers:   headers,
		Timestamp: message.Timestamp.UnixMilli(),
	}
}

func (c *consumer) close() error {
	if c.member != nil {
		c.member.leave()
	}
	for _, each := range c.readers {
		each.partition.AsyncClose()
	}
	return c.client.Close()
}
