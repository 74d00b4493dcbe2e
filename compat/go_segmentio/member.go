package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	driver "ottla/compat/go_driver"
)

// A member of a group lives through generations, one after the other, and has a reader for each partition.
type member struct {
	consumer *consumer
	group    *kafka.ConsumerGroup
	ended    chan struct{}

	guard      sync.Mutex
	generation *kafka.Generation
	changes    []driver.Event
}

func join(c *consumer, topics []string) (groupReader, error) {
	interval := lookForPartitions
	if age := driver.Get[*int](c.with, "metadata_age_ms"); age != nil {
		interval = time.Duration(*age) * time.Millisecond
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                     c.groupID(),
		Brokers:                []string{address(c.with)},
		Topics:                 topics,
		GroupBalancers:         []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
		HeartbeatInterval:      driver.Heartbeat,
		SessionTimeout:         driver.Session,
		JoinGroupBackoff:       driver.Heartbeat,
		WatchPartitionChanges:  true,
		PartitionWatchInterval: interval,
		StartOffset:            resets[driver.Get[string](c.with, "reset")],
	})
	if err != nil {
		return nil, err
	}
	m := &member{consumer: c, group: group, ended: make(chan struct{})}
	go m.run()
	return m, nil
}

func (m *member) run() {
	defer close(m.ended)
	for {
		generation, err := m.group.Next(context.Background())
		var refused kafka.Error
		switch {
		case errors.Is(err, kafka.ErrGroupClosed):
			return
		case errors.As(err, &refused) && (refused == kafka.RebalanceInProgress || refused.Temporary()):
			continue // the next generation is on its way
		case err != nil:
			m.consumer.errors <- err
			continue
		}
		m.guard.Lock()
		m.generation = generation
		m.guard.Unlock()
		for topic, assigned := range generation.Assignments {
			for _, each := range assigned {
				at, offset := driver.At(topic, int32(each.ID)), each.Offset
				m.note("gained", at)
				generation.Start(func(ctx context.Context) { m.read(ctx, at, offset) })
			}
		}
	}
}

// read passes a partition's messages on until the generation is over.
func (m *member) read(ctx context.Context, at driver.Partition, offset int64) {
	defer m.note("lost", at)
	opened, err := m.consumer.open(at, offset)
	if err != nil {
		m.consumer.errors <- err
		<-ctx.Done()
		return
	}
	m.consumer.read(ctx, &reading{reader: opened})
	<-ctx.Done()
	_ = opened.Close() // what fails while closing was told before
}

func (m *member) note(kind string, partition driver.Partition) {
	m.guard.Lock()
	defer m.guard.Unlock()
	m.changes = append(m.changes, driver.Event{Kind: kind, Partitions: []driver.Partition{partition}})
	select {
	case m.consumer.changed <- struct{}{}:
	default: // it is known that there is something
	}
}

func (m *member) events() []driver.Event {
	m.guard.Lock()
	defer m.guard.Unlock()
	told := m.changes
	m.changes = nil
	return told
}

func (m *member) leave() error {
	err := m.group.Close()
	<-m.ended
	return err
}

// A committingReader leaves everything to kafka-go, which does not tell its partitions.
type committingReader struct {
	reader *kafka.Reader
	cancel context.CancelFunc
	ended  chan struct{}
}

func readAndCommit(c *consumer, topics []string) groupReader {
	config := c.readerConfig()
	config.GroupID, config.GroupTopics = c.groupID(), topics
	config.StartOffset = resets[driver.Get[string](c.with, "reset")]
	config.CommitInterval = driver.FetchWait
	config.HeartbeatInterval, config.SessionTimeout = driver.Heartbeat, driver.Session
	ctx, cancel := context.WithCancel(context.Background())
	r := &committingReader{kafka.NewReader(config), cancel, make(chan struct{})}
	go func() {
		defer close(r.ended)
		for {
			message, err := r.reader.ReadMessage(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				c.errors <- err
				return
			}
			c.messages <- received{message, &reading{reader: r.reader}}
		}
	}()
	return r
}

func (r *committingReader) events() []driver.Event { return nil }

func (r *committingReader) leave() error {
	r.cancel()
	<-r.ended
	return r.reader.Close()
}
