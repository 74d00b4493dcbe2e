package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Arguments of a call, by name.
type arguments map[string]json.RawMessage

// get reads an argument; one that is null or absent gives the type's zero.
func get[T any](with arguments, name string) T {
	var value T
	if raw, given := with[name]; given {
		if err := json.Unmarshal(raw, &value); err != nil {
			panic(err)
		}
	}
	return value
}

func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// A partition is written as a list of topic and number.
type partition struct {
	topic  string
	number int32
}

func (p *partition) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&p.topic, &p.number})
}

func (p partition) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.topic, p.number})
}

// A pair is an entry of a table by partition.
type pair[T any] struct {
	of    partition
	value T
}

func (p *pair[T]) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&p.of, &p.value})
}

func (p pair[T]) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.of, p.value})
}

// A committed offset is written as a list of offset and text.
type committed struct {
	offset   int64
	metadata string
}

func (c *committed) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&c.offset, &c.metadata})
}

func (c committed) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{c.offset, c.metadata})
}

// An event is partitions that a consumer has "gained" or "lost".
type event struct {
	kind       string
	partitions []partition
}

func (e event) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{e.kind, e.partitions})
}

func byTopic(partitions []partition) map[string][]int32 {
	table := make(map[string][]int32)
	for _, each := range partitions {
		table[each.topic] = append(table[each.topic], each.number)
	}
	return table
}

func topicsOf(partitions []partition) []string {
	var topics []string
	for topic := range byTopic(partitions) {
		topics = append(topics, topic)
	}
	return topics
}

func setOf(partitions []partition) kadm.TopicsSet {
	var set kadm.TopicsSet
	for _, each := range partitions {
		set.Add(each.topic, each.number)
	}
	return set
}

func listOf(table map[string][]int32) []partition {
	list := []partition{}
	for topic, numbers := range table {
		for _, number := range numbers {
			list = append(list, partition{topic, number})
		}
	}
	return list
}

// A header is written as a list of name and value.
type header struct {
	name  string
	value []byte
}

func (h *header) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&h.name, &h.value})
}

func (h header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.name, h.value})
}

// A sentRecord is one to produce.
type sentRecord struct {
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
	Timestamp *int64   `json:"timestamp_ms"`
	Partition *int32   `json:"partition"`
}

// noPartition is that of a record whose partition the client chooses.
const noPartition = -1

func recordsToSend(topic string, sent []sentRecord) []*kgo.Record {
	var records []*kgo.Record
	for _, each := range sent {
		record := &kgo.Record{Topic: topic, Key: each.Key, Value: each.Value, Partition: noPartition}
		for _, header := range each.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.name, Value: header.value})
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

// A takenRecord is one that a consumer got.
type takenRecord struct {
	Topic         string   `json:"topic"`
	Partition     int32    `json:"partition"`
	Offset        int64    `json:"offset"`
	Key           []byte   `json:"key"`
	Value         []byte   `json:"value"`
	Headers       []header `json:"headers"`
	Timestamp     int64    `json:"timestamp_ms"`
	DeliveryCount int32    `json:"delivery_count"`
}

func taken(record *kgo.Record) takenRecord {
	headers := []header{}
	for _, each := range record.Headers {
		headers = append(headers, header{each.Key, each.Value})
	}
	return takenRecord{
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
