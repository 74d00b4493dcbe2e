package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	driver "ottla/compat/go_driver"
)

func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), driver.Patience)
}

func topicsOf(partitions []driver.Partition) []string {
	var topics []string
	for topic := range driver.ByTopic(partitions) {
		topics = append(topics, topic)
	}
	return topics
}

func setOf(partitions []driver.Partition) kadm.TopicsSet {
	var set kadm.TopicsSet
	for _, each := range partitions {
		set.Add(each.Topic, each.Number)
	}
	return set
}

// noPartition is that of a record whose partition the client chooses.
const noPartition = -1

func recordsToSend(topic string, sent []driver.SentRecord) []*kgo.Record {
	var records []*kgo.Record
	for _, each := range sent {
		record := &kgo.Record{Topic: topic, Key: each.Key, Value: each.Value, Partition: noPartition}
		for _, header := range each.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		if each.Timestamp != nil {
			record.Timestamp = time.UnixMilli(*each.Timestamp)
		}
		if each.Partition != nil {
			record.Partition = *each.Partition
		}
		records = append(records, record)
	}
	return records
}

func taken(record *kgo.Record) driver.TakenRecord {
	headers := []driver.Header{}
	for _, each := range record.Headers {
		headers = append(headers, driver.Header{Name: each.Key, Value: each.Value})
	}
	return driver.TakenRecord{
		Topic:         record.Topic,
		Partition:     record.Partition,
		Offset:        record.Offset,
		Key:           record.Key,
		Value:         record.Value,
		Headers:       headers,
		Timestamp:     record.Timestamp.UnixMilli(),
		DeliveryCount: record.DeliveryCount(),
	}
}
