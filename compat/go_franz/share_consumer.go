package main

import (
	driver "ottla/compat/go_driver"

	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A shareConsumer is a member of a share group from its subscription on.  Calls come one after the other.
type shareConsumer struct {
	with   driver.Arguments
	client *kgo.Client
	polled map[driver.Partition]map[int64]*kgo.Record

	guard    sync.Mutex
	refusals []error
}

var acknowledgements = map[string]kgo.AckStatus{
	"accept":  kgo.AckAccept,
	"release": kgo.AckRelease,
	"reject":  kgo.AckReject,
}

func (s *shareConsumer) Call(operation string, with driver.Arguments) (any, error) {
	switch operation {
	case "subscribe":
		return nil, s.subscribe(driver.Get[[]string](with, "topics"))
	case "poll":
		return s.poll(time.Duration(driver.Get[int](with, "wait_ms")) * time.Millisecond)
	case "acknowledge":
		of := driver.Get[driver.Partition](with, "partition")
		s.polled[of][driver.Get[int64](with, "offset")].Ack(acknowledgements[driver.Get[string](with, "how")])
		return nil, nil
	case "renew":
		for _, each := range driver.Get[[]driver.Pair[int64]](with, "records") {
			s.polled[each.Of][each.Value].Ack(kgo.AckRenew)
		}
		return nil, s.flush()
	case "commit":
		return nil, s.commit()
	case "close":
		if s.client != nil {
			s.client.Close()
		}
		return nil, nil
	}
	return nil, driver.Unknown(operation)
}

func (s *shareConsumer) subscribe(topics []string) error {
	options := append(common(s.with),
		kgo.ShareGroup(driver.Get[string](s.with, "group")),
		kgo.ConsumeTopics(topics...),
		kgo.FetchMaxWait(driver.FetchWait),
		kgo.ShareAckCallback(s.note),
	)
	if count := driver.Get[*int32](s.with, "records_max"); count != nil {
		options = append(options, kgo.ShareMaxRecords(*count), kgo.ShareMaxRecordsStrict())
	}
	client, err := kgo.NewClient(options...)
	s.client = client
	return err
}

func (s *shareConsumer) note(_ *kgo.Client, results kgo.ShareAckResults) {
	if err := results.Error(); err != nil {
		s.guard.Lock()
		defer s.guard.Unlock()
		s.refusals = append(s.refusals, err)
	}
}

func (s *shareConsumer) poll(wait time.Duration) ([]driver.TakenRecord, error) {
	ctx, done := context.WithTimeout(context.Background(), wait)
	defer done()
	recordsMax := -1
	if count := driver.Get[*int](s.with, "records_max"); count != nil {
		recordsMax = *count
	}
	fetches := s.client.PollRecords(ctx, recordsMax)
	for _, each := range fetches.Errors() {
		if !errors.Is(each.Err, context.DeadlineExceeded) && !isRetried(each.Err) {
			return nil, each.Err
		}
	}
	s.polled = make(map[driver.Partition]map[int64]*kgo.Record)
	records := []driver.TakenRecord{}
	fetches.EachRecord(func(record *kgo.Record) {
		of := driver.At(record.Topic, record.Partition)
		if s.polled[of] == nil {
			s.polled[of] = make(map[int64]*kgo.Record)
		}
		s.polled[of][record.Offset] = record
		records = append(records, taken(record))
	})
	return records, nil
}

// commit accepts, for an implicit member, what the last poll gave.
func (s *shareConsumer) commit() error {
	if !driver.Get[bool](s.with, "explicit") {
		s.client.MarkAcks(kgo.AckAccept)
	}
	return s.flush()
}

func (s *shareConsumer) flush() error {
	ctx, done := bounded()
	defer done()
	if err := s.client.FlushAcks(ctx); err != nil {
		return err
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	refusals := s.refusals
	s.refusals = nil
	return errors.Join(refusals...)
}
