package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"

	driver "ottla/compat/go_driver"
)

// A producer writes batches, and waits for what the broker says to them.
type producer struct {
	writer    *kafka.Writer
	transport *kafka.Transport
}

var acks = map[string]kafka.RequiredAcks{
	"none":   kafka.RequireNone,
	"leader": kafka.RequireOne,
	"all":    kafka.RequireAll,
}

var codecs = map[string]kafka.Compression{
	"gzip":   kafka.Gzip,
	"snappy": kafka.Snappy,
	"lz4":    kafka.Lz4,
	"zstd":   kafka.Zstd,
}

const messagesInABatch = 1000

// A sent message knows where it is to go, and where it went.
type sent struct {
	chosen *int32
	place  driver.Place
}

func newProducer(with driver.Arguments) (driver.Subject, error) {
	if driver.Get[bool](with, "idempotent") {
		return nil, driver.NotOffered("its writer is not idempotent")
	}
	transport := newTransport()
	writer := &kafka.Writer{
		Addr:                   kafka.TCP(address(with)),
		Balancer:               balancer{kafka.Murmur2Balancer{}},
		BatchSize:              messagesInABatch,
		BatchTimeout:           time.Duration(driver.Get[int](with, "linger_ms")) * time.Millisecond,
		RequiredAcks:           acks[driver.Get[string](with, "acks")],
		Compression:            codecs[driver.Get[string](with, "codec")],
		AllowAutoTopicCreation: true,
		Transport:              transport,
		Completion:             noted,
	}
	for _, limit := range []string{"batch_bytes_max", "request_bytes_max"} {
		if size := driver.Get[*int64](with, limit); size != nil {
			writer.BatchBytes = *size
		}
	}
	return &producer{writer, transport}, nil
}

// noted is called by kafka-go with each batch that is written, before those who wait for it go on.
func noted(messages []kafka.Message, err error) {
	for _, each := range messages {
		if err == nil {
			each.WriterData.(*sent).place = driver.Place{int64(each.Partition), each.Offset}
		}
	}
}

func (p *producer) Call(operation string, with driver.Arguments) (any, error) {
	switch operation {
	case "send":
		return p.send(driver.Get[string](with, "topic"), driver.Get[[]driver.SentRecord](with, "records"))
	case "close":
		defer p.transport.CloseIdleConnections()
		return nil, p.writer.Close()
	}
	return nil, driver.Unknown(operation)
}

func (p *producer) send(topic string, records []driver.SentRecord) ([]driver.Place, error) {
	ctx, cancel := patiently()
	defer cancel()
	messages := make([]kafka.Message, len(records))
	for i, each := range records {
		if err := unreadable(each); err != nil {
			return nil, err
		}
		messages[i] = message(topic, each)
	}
	err := p.write(ctx, messages)
	for errors.Is(err, kafka.UnknownTopicOrPartition) && ctx.Err() == nil {
		time.Sleep(driver.FetchWait) // it is being made, and the writer does not wait for that
		err = p.write(ctx, messages)
	}
	if err != nil {
		return nil, err
	}
	places := make([]driver.Place, len(messages))
	for i, each := range messages {
		places[i] = each.WriterData.(*sent).place
	}
	return places, nil
}

// write writes messages, and gives the first of their errors.
func (p *producer) write(ctx context.Context, messages []kafka.Message) error {
	err := p.writer.WriteMessages(ctx, messages...)
	var several kafka.WriteErrors
	if errors.As(err, &several) {
		for _, each := range several {
			if each != nil {
				return each
			}
		}
	}
	return err
}

// unreadable tells of what would come back from a reader as something else.
func unreadable(record driver.SentRecord) error {
	unclear := record.Value != nil && len(record.Value) == 0
	for _, each := range record.Headers {
		unclear = unclear || each.Value == nil
	}
	if unclear {
		return driver.NotOffered("its readers do not tell null from empty")
	}
	return nil
}

func message(topic string, record driver.SentRecord) kafka.Message {
	made := kafka.Message{
		Topic:      topic,
		Key:        record.Key,
		Value:      record.Value,
		WriterData: &sent{chosen: record.Partition, place: driver.Place{-1, -1}},
	}
	for _, each := range record.Headers {
		made.Headers = append(made.Headers, kafka.Header{Key: each.Name, Value: each.Value})
	}
	if record.Timestamp != nil {
		made.Time = time.UnixMilli(*record.Timestamp)
	}
	return made
}

// A balancer leaves a message where it is told to be, and the others to another balancer.
type balancer struct{ others kafka.Balancer }

func (b balancer) Balance(given kafka.Message, partitions ...int) int {
	if chosen := given.WriterData.(*sent).chosen; chosen != nil {
		return int(*chosen)
	}
	return b.others.Balance(given, partitions...)
}
