package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"

	driver "ottla/compat/go_driver"
)

// A producer is transactional or not.
type producer struct {
	sarama.SyncProducer
}

var acks = map[string]sarama.RequiredAcks{
	"none":   sarama.NoResponse,
	"leader": sarama.WaitForLocal,
	"all":    sarama.WaitForAll,
}

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func producing(with driver.Arguments) *sarama.Config {
	config := settings(with)
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = func(topic string) sarama.Partitioner {
		return partitioner{sarama.NewMurmur2Partitioner(topic)}
	}
	return config
}

func idempotent(config *sarama.Config) {
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
}

func newProducer(with driver.Arguments) (driver.Subject, error) {
	config := producing(with)
	config.Producer.RequiredAcks = acks[driver.Get[string](with, "acks")]
	config.Producer.Compression = codecs[driver.Get[string](with, "codec")]
	config.Producer.Flush.Frequency = time.Duration(driver.Get[int](with, "linger_ms")) * time.Millisecond
	if driver.Get[bool](with, "idempotent") {
		idempotent(config)
	}
	for _, limit := range []string{"batch_bytes_max", "request_bytes_max"} {
		if size := driver.Get[*int](with, limit); size != nil {
			config.Producer.MaxMessageBytes = *size
		}
	}
	opened, err := sarama.NewSyncProducer(addresses(with), config)
	return &producer{opened}, err
}

func newTransactionalProducer(with driver.Arguments) (driver.Subject, error) {
	config := producing(with)
	idempotent(config)
	config.Producer.Transaction.ID = driver.Get[string](with, "transactional_id")
	config.Producer.Transaction.Timeout = time.Duration(driver.Get[int](with, "timeout_ms")) * time.Millisecond
	opened, err := sarama.NewSyncProducer(addresses(with), config)
	return &producer{opened}, err
}

func (p *producer) Call(operation string, with driver.Arguments) (any, error) {
	switch operation {
	case "send":
		return p.send(driver.Get[string](with, "topic"), driver.Get[[]driver.SentRecord](with, "records"))
	case "begin":
		return nil, p.ofTransaction(p.BeginTxn())
	case "send_offsets":
		return nil, p.sendOffsets(with)
	case "commit":
		return nil, p.ofTransaction(p.CommitTxn())
	case "abort":
		return nil, p.ofTransaction(p.AbortTxn())
	case "close":
		return nil, p.Close()
	}
	return nil, driver.Unknown(operation)
}

// ofTransaction marks the errors of a producer that has lost its id or its transaction.
func (p *producer) ofTransaction(err error) error {
	lost := p.IsTransactional() && p.TxnStatus()&sarama.ProducerTxnFlagFatalError != 0
	for _, each := range []error{
		sarama.ErrProducerFenced, sarama.ErrInvalidProducerEpoch, sarama.ErrInvalidTxnState,
	} {
		lost = lost || errors.Is(err, each)
	}
	if err != nil && lost {
		return driver.Fenced{Cause: err}
	}
	return err
}

func (p *producer) send(topic string, records []driver.SentRecord) ([]driver.Place, error) {
	var messages []*sarama.ProducerMessage
	for _, each := range records {
		messages = append(messages, message(topic, each))
	}
	err := p.SendMessages(messages)
	var several sarama.ProducerErrors
	if errors.As(err, &several) && len(several) > 0 {
		err = several[0].Err
	}
	if err != nil {
		return nil, p.ofTransaction(err)
	}
	places := []driver.Place{}
	for _, each := range messages {
		places = append(places, driver.Place{int64(each.Partition), each.Offset})
	}
	return places, nil
}

func message(topic string, record driver.SentRecord) *sarama.ProducerMessage {
	sent := &sarama.ProducerMessage{Topic: topic}
	if record.Key != nil {
		sent.Key = sarama.ByteEncoder(record.Key)
	}
	if record.Value != nil {
		sent.Value = sarama.ByteEncoder(record.Value)
	}
	for _, each := range record.Headers {
		sent.Headers = append(sent.Headers, sarama.RecordHeader{Key: []byte(each.Name), Value: each.Value})
	}
	if record.Timestamp != nil {
		sent.Timestamp = time.UnixMilli(*record.Timestamp)
	}
	sent.Metadata = record.Partition
	return sent
}

func (p *producer) sendOffsets(with driver.Arguments) error {
	offsets := make(map[string][]*sarama.PartitionOffsetMetadata)
	for _, each := range driver.Get[[]driver.Pair[int64]](with, "offsets") {
		offsets[each.Of.Topic] = append(offsets[each.Of.Topic], &sarama.PartitionOffsetMetadata{
			Partition: each.Of.Number, Offset: each.Value, LeaderEpoch: -1,
		})
	}
	member := driver.Opened(driver.Get[int](with, "consumer")).(*consumer)
	return p.ofTransaction(p.AddOffsetsToTxnWithGroupMetadata(offsets, member.metadata()))
}

// A partitioner leaves a record where it is told to be, and the others to another partitioner.
type partitioner struct{ others sarama.Partitioner }

func (p partitioner) Partition(sent *sarama.ProducerMessage, count int32) (int32, error) {
	if chosen, _ := sent.Metadata.(*int32); chosen != nil {
		return *chosen, nil
	}
	return p.others.Partition(sent, count)
}

func (p partitioner) RequiresConsistency() bool { return true }
