package main

import (
	driver "ottla/compat/go_driver"

	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A producer is transactional or not.
type producer struct {
	client *kgo.Client
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"none": kgo.NoAck(), "leader": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

// A topic that is being made is asked for again as often as news may come: for ten seconds.
const unknownTopicRetries = 100

// What all clients are opened with: news of topics comes soon.
func common(with driver.Arguments) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(driver.Get[string](with, "address")),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
}

func newProducer(with driver.Arguments) (driver.Subject, error) {
	options := append(common(with),
		kgo.AllowAutoTopicCreation(),
		kgo.UnknownTopicRetries(unknownTopicRetries),
		kgo.RequiredAcks(acks[driver.Get[string](with, "acks")]),
		kgo.ProducerBatchCompression(codecs[driver.Get[string](with, "codec")]),
		kgo.ProducerLinger(time.Duration(driver.Get[int](with, "linger_ms"))*time.Millisecond),
		kgo.RecordPartitioner(partitioner{kgo.StickyKeyPartitioner(nil)}),
	)
	if !driver.Get[bool](with, "idempotent") {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	for _, limit := range []string{"batch_bytes_max", "request_bytes_max"} {
		if size := driver.Get[*int32](with, limit); size != nil {
			options = append(options, kgo.ProducerBatchMaxBytes(*size))
		}
	}
	client, err := kgo.NewClient(options...)
	return &producer{client}, err
}

func transactional(with driver.Arguments) []kgo.Opt {
	options := append(common(with),
		kgo.TransactionalID(driver.Get[string](with, "transactional_id")),
		kgo.RecordPartitioner(partitioner{kgo.StickyKeyPartitioner(nil)}),
	)
	if timeout := driver.Get[*int](with, "timeout_ms"); timeout != nil {
		options = append(options, kgo.TransactionTimeout(time.Duration(*timeout)*time.Millisecond))
	}
	return options
}

func newTransactionalProducer(with driver.Arguments) (driver.Subject, error) {
	client, err := kgo.NewClient(transactional(with)...)
	if err != nil {
		return nil, err
	}
	ctx, done := bounded()
	defer done()
	_, _, err = client.ProducerID(ctx) // otherwise it would be asked for with the first record
	return &producer{client}, err
}

func (p *producer) Call(operation string, with driver.Arguments) (any, error) {
	switch operation {
	case "send":
		return send(p.client, with)
	case "begin":
		return nil, ofTransaction(p.client.BeginTransaction())
	case "send_offsets":
		return nil, driver.NotOffered("its producer commits a group's offsets in sessions only")
	case "commit":
		return nil, p.end(kgo.TryCommit)
	case "abort":
		return nil, p.end(kgo.TryAbort)
	case "close":
		p.client.Close()
		return nil, nil
	}
	return nil, driver.Unknown(operation)
}

func (p *producer) end(how kgo.TransactionEndTry) error {
	ctx, done := bounded()
	defer done()
	if err := p.client.Flush(ctx); err != nil {
		return err
	}
	return ofTransaction(p.client.EndTransaction(ctx, how))
}

// synchronous is a client, or a session of one.
type synchronous interface {
	ProduceSync(ctx context.Context, records ...*kgo.Record) kgo.ProduceResults
}

func send(client synchronous, with driver.Arguments) ([]driver.Place, error) {
	ctx, done := bounded()
	defer done()
	records := recordsToSend(driver.Get[string](with, "topic"), driver.Get[[]driver.SentRecord](with, "records"))
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, ofTransaction(err)
	}
	places := []driver.Place{}
	for _, each := range records {
		places = append(places, driver.Place{int64(each.Partition), each.Offset})
	}
	return places, nil
}

// A partitioner leaves a record where it is told to be, and the others to another partitioner.
type partitioner struct{ others kgo.Partitioner }

type topicPartitioner struct{ others kgo.TopicPartitioner }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return topicPartitioner{p.others.ForTopic(topic)}
}

func (p topicPartitioner) RequiresConsistency(record *kgo.Record) bool {
	return record.Partition != noPartition || p.others.RequiresConsistency(record)
}

func (p topicPartitioner) Partition(record *kgo.Record, count int) int {
	if record.Partition != noPartition {
		return int(record.Partition)
	}
	return p.others.Partition(record, count)
}

func (p topicPartitioner) OnNewBatch() {
	if others, tells := p.others.(kgo.TopicPartitionerOnNewBatch); tells {
		others.OnNewBatch()
	}
}
