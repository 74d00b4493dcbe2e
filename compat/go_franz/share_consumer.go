package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A shareConsumer is a member of a share group from its subscription on.  Calls come one after the other.
type shareConsumer struct {
	with   arguments
	client *kgo.Client
	polled map[partition]map[int64]*kgo.Record

	guard    sync.Mutex
	refusals []error
}

var acknowledgements = map[string]kgo.AckStatus{
	"accept":  kgo.AckAccept,
	"release": kgo.AckRelease,
	"reject":  kgo.AckReject,
}

func (s *shareConsumer) call(operation string, with arguments) (any, error) {
	switch operation {
	case "subscribe":
		return nil, s.subscribe(get[[]string](with, "topics"))
	case "poll":
		return s.poll(time.Duration(get[int](with, "wait_ms")) * time.Millisecond)
	case "acknowledge":
		of := get[partition](with, "partition")
		s.polled[of][get[int64](with, "offset")].Ack(acknowledgements[get[string](with, "how")])
		return nil, nil
	case "renew":
		for _, each := range get[[]pair[int64]](with, "records") {
			s.polled[each.of][each.value].Ack(kgo.AckRenew)
		}
		return nil, s.flush()
	case "commit":
		return nil, s.commit()
	case "close":
		s.client.Close()
		return nil, nil
	}
	return nil, unknown(operation)
}

func (s *shareConsumer) subscribe(topics []string) error {
	options := append(common(s.with),
		kgo.ShareGroup(get[string](s.with, "group")),
		kgo.ConsumeTopics(topics...),
		kgo.FetchMaxWait(fetchWait),
		kgo.ShareAckCallback(s.note),
	)
	if count := get[*int32](s.with, "records_max"); count != nil {
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

func (s *shareConsumer) poll(wait time.Duration) ([]takenRecord, error) {
	ctx, done := context.WithTimeout(context.Background(), wait)
	defer done()
	recordsMax := -1
	if count := get[*int](s.with, "records_max"); count != nil {
		recordsMax = *count
	}
	fetches := s.client.PollRecords(ctx, recordsMax)
	for _, each := range fetches.Errors() {
		if !errors.Is(each.Err, context.DeadlineExceeded) {
			return nil, each.Err
		}
	}
	s.polled = make(map[partition]map[int64]*kgo.Record)
	records := []takenRecord{}
	fetches.EachRecord(func(record *kgo.Record) {
		of := partition{record.Topic, record.Partition}
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
	if !get[bool](s.with, "explicit") {
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
