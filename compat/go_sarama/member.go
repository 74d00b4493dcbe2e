package main

import (
	"context"
	"sync"

	"github.com/IBM/sarama"

	driver "ottla/compat/go_driver"
)

// A member of a group runs sessions, one after the other, in tasks of sarama.
type member struct {
	consumer *consumer
	group    sarama.ConsumerGroup
	cancel   context.CancelFunc
	ended    chan struct{}

	guard   sync.Mutex
	session sarama.ConsumerGroupSession
	changes []driver.Event
}

func join(c *consumer, topics []string) (*member, error) {
	group, err := sarama.NewConsumerGroupFromClient(c.group(), c.client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{
		consumer: c,
		group:    group,
		cancel:   cancel,
		ended:    make(chan struct{}),
	}
	go m.run(ctx, topics)
	go func() {
		for err := range group.Errors() {
			c.errors <- err
		}
	}()
	return m, nil
}

func (m *member) run(ctx context.Context, topics []string) {
	defer close(m.ended)
	for ctx.Err() == nil {
		if err := m.group.Consume(ctx, topics, m); err != nil {
			m.consumer.errors <- err
			return
		}
	}
}

// Setup is called by sarama when a session begins.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.guard.Lock()
	defer m.guard.Unlock()
	m.session = session
	return nil
}

// Cleanup is called by sarama when a session is over.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim is called by sarama for each partition of a session, and ends when the member loses it.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	partition := driver.At(claim.Topic(), claim.Partition())
	m.note("gained", partition)
	defer m.note("lost", partition)
	offset := claim.InitialOffset()
	if offset < 0 {
		found, err := m.consumer.client.GetOffset(claim.Topic(), claim.Partition(), offset)
		if err != nil {
			return err
		}
		offset = found
	}
	m.consumer.goOn(partition, offset)
	for {
		select {
		case message, more := <-claim.Messages():
			if !more {
				return nil
			}
			m.consumer.records <- received{message: message}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) note(kind string, partition driver.Partition) {
	m.guard.Lock()
	defer m.guard.Unlock()
	m.changes = append(m.changes, driver.Event{Kind: kind, Partitions: []driver.Partition{partition}})
}

func (m *member) events() []driver.Event {
	m.guard.Lock()
	defer m.guard.Unlock()
	told := m.changes
	m.changes = nil
	return told
}

func (m *member) mark(at driver.Partition, committed driver.Committed) {
	m.guard.Lock()
	defer m.guard.Unlock()
	// Marking goes forward only, resetting backward only.
	m.session.MarkOffset(at.Topic, at.Number, committed.Offset, committed.Metadata)
	m.session.ResetOffset(at.Topic, at.Number, committed.Offset, committed.Metadata)
}

func (m *member) commit() {
	m.guard.Lock()
	session := m.session
	m.guard.Unlock()
	session.Commit()
}

func (m *member) metadata(group string) *sarama.ConsumerGroupMetadata {
	m.guard.Lock()
	defer m.guard.Unlock()
	metadata := sarama.NewConsumerGroupMetadata(group)
	metadata.GenerationID, metadata.MemberID = m.session.GenerationID(), m.session.MemberID()
	return metadata
}

func (m *member) leave() {
	m.cancel()
	<-m.ended
	_ = m.group.Close() // what fails while closing was told before
}
