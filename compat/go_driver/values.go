package driver

import "encoding/json"

// Arguments of a call, by name.
type Arguments map[string]json.RawMessage

// Get reads an argument; one that is null or absent gives the type's zero.
func Get[T any](with Arguments, name string) T {
	var value T
	if raw, given := with[name]; given {
		if err := json.Unmarshal(raw, &value); err != nil {
			panic(err)
		}
	}
	return value
}

// A Partition is written as a list of topic and number.
type Partition struct {
	Topic  string
	Number int32
}

// At names a partition.
func At(topic string, number int32) Partition { return Partition{topic, number} }

func (p *Partition) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&p.Topic, &p.Number})
}

func (p Partition) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.Topic, p.Number})
}

// A Pair is an entry of a table by partition.
type Pair[T any] struct {
	Of    Partition
	Value T
}

// PairOf makes an entry.
func PairOf[T any](of Partition, value T) Pair[T] { return Pair[T]{of, value} }

func (p *Pair[T]) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&p.Of, &p.Value})
}

func (p Pair[T]) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.Of, p.Value})
}

// A Committed offset is written as a list of offset and text.
type Committed struct {
	Offset   int64
	Metadata string
}

func (c *Committed) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&c.Offset, &c.Metadata})
}

func (c Committed) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{c.Offset, c.Metadata})
}

// An Event is partitions that a consumer has "gained" or "lost".
type Event struct {
	Kind       string
	Partitions []Partition
}

func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{e.Kind, e.Partitions})
}

// ByTopic gives the numbers of each topic's partitions.
func ByTopic(partitions []Partition) map[string][]int32 {
	table := make(map[string][]int32)
	for _, each := range partitions {
		table[each.Topic] = append(table[each.Topic], each.Number)
	}
	return table
}

// ListOf is the reverse of ByTopic.
func ListOf(table map[string][]int32) []Partition {
	list := []Partition{}
	for topic, numbers := range table {
		for _, number := range numbers {
			list = append(list, At(topic, number))
		}
	}
	return list
}

// A Header is written as a list of name and value.
type Header struct {
	Name  string
	Value []byte
}

func (h *Header) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&h.Name, &h.Value})
}

func (h Header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.Name, h.Value})
}

// A SentRecord is one to produce.
type SentRecord struct {
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
	Timestamp *int64   `json:"timestamp_ms"`
	Partition *int32   `json:"partition"`
}

// A TakenRecord is one that a consumer got.
type TakenRecord struct {
	Topic         string   `json:"topic"`
	Partition     int32    `json:"partition"`
	Offset        int64    `json:"offset"`
	Key           []byte   `json:"key"`
	Value         []byte   `json:"value"`
	Headers       []Header `json:"headers"`
	Timestamp     int64    `json:"timestamp_ms"`
	DeliveryCount int32    `json:"delivery_count"`
}

// A Place is written as a list of partition and offset.
type Place [2]int64

// A Group is what there is to say of one.
type Group struct {
	State    string   `json:"state"`
	Protocol string   `json:"protocol,omitempty"` // empty: the library does not tell
	Members  []Member `json:"members"`
}

// A Member is one of a Group.
type Member struct {
	MemberID   string      `json:"member_id"`
	ClientID   string      `json:"client_id"`
	Host       string      `json:"host"`
	InstanceID *string     `json:"instance_id"`
	Assigned   []Partition `json:"assigned"`
}

// A PartitionDescription is a list of number, leader, replicas and those in sync.
type PartitionDescription [4]any
