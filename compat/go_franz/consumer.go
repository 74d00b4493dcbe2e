package main

import (
	driver "ottla/compat/go_driver"

	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// With this in a client's context, franz-go uses the groups of KIP-848.
const newProtocolKey = "opt_in_kafka_next_gen_balancer_beta"

// A consumer reads partitions that it or its group chooses.  A client of franz-go is told when it is made what to
// consume, so that it is made with the subscription, or with the first poll of partitions that were assigned.
// Calls come one after the other; franz-go tells of partitions from a task of its own.
type consumer struct {
	with      driver.Arguments
	asking    *kadm.Client
	client    *kgo.Client
	assigned  []driver.Partition
	starts    map[driver.Partition]kgo.Offset
	positions map[driver.Partition]int64
	commits   []chan error
	fetching  fetchHook

	guard   sync.Mutex
	changes []driver.Event
}

func newConsumer(with driver.Arguments) (driver.Subject, error) {
	options := common(with)
	asking, err := kadm.NewOptClient(options...)
	if err != nil {
		return nil, err
	}
	return &consumer{
		with:      with,
		asking:    asking,
		starts:    make(map[driver.Partition]kgo.Offset),
		positions: make(map[driver.Partition]int64),
	}, nil
}

func (c *consumer) group() string { return driver.Get[string](c.with, "group") }

// A fetchHook knows whether a client has begun to fetch: it has found where to begin then.
type fetchHook struct {
	guard sync.Mutex
	began bool
}

func (h *fetchHook) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == kmsg.Fetch.Int16() {
		h.guard.Lock()
		defer h.guard.Unlock()
		h.began = true
	}
}

func (h *fetchHook) hasBegun() bool {
	h.guard.Lock()
	defer h.guard.Unlock()
	return h.began
}

func (c *consumer) options() []kgo.Opt {
	options := append(common(c.with),
		kgo.FetchMaxWait(driver.FetchWait),
		kgo.ConsumeResetOffset(resets[driver.Get[string](c.with, "reset")]),
		kgo.WithHooks(&c.fetching),
	)
	if driver.Get[bool](c.with, "committed_only") {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if size := driver.Get[*int32](c.with, "fetch_bytes_max"); size != nil {
		options = append(options, kgo.FetchMaxPartitionBytes(*size))
	}
	if age := driver.Get[*int](c.with, "metadata_age_ms"); age != nil {
		options = append(options, kgo.MetadataMaxAge(time.Duration(*age)*time.Millisecond))
	}
	if may := driver.Get[*bool](c.with, "may_create_topics"); may != nil && *may {
		options = append(options, kgo.AllowAutoTopicCreation())
	}
	return options
}

var resets = map[string]kgo.Offset{
	"earliest": kgo.NewOffset().AtStart(),
	"latest":   kgo.NewOffset().AtEnd(),
	"none":     kgo.NoResetOffset(),
}

// memberOptions are those of a member of the group that the arguments name.
func memberOptions(with driver.Arguments) []kgo.Opt {
	options := []kgo.Opt{kgo.ConsumerGroup(driver.Get[string](with, "group"))}
	if driver.Get[bool](with, "new_protocol") {
		ctx := context.WithValue(context.Background(), newProtocolKey, true) //nolint:staticcheck // a plain key
		return append(options, kgo.WithContext(ctx))
	}
	balancer := kgo.RangeBalancer()
	if driver.Get[bool](with, "cooperative") {
		balancer = kgo.CooperativeStickyBalancer()
	}
	return append(options,
		kgo.Balancers(balancer), kgo.SessionTimeout(driver.Session), kgo.HeartbeatInterval(driver.Heartbeat))
}

func (c *consumer) subscribe(topics []string, pattern *string) error {
	options := append(c.options(), memberOptions(c.with)...)
	options = append(options,
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			c.note("gained", partitions)
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
			if driver.Get[bool](c.with, "auto_commit") { // as it does by itself where nobody listens
				_ = client.CommitUncommittedOffsets(ctx)
			}
			c.note("lost", partitions)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			c.note("lost", partitions)
		}),
	)
	if !driver.Get[bool](c.with, "auto_commit") {
		options = append(options, kgo.DisableAutoCommit())
	}
	if id := driver.Get[*string](c.with, "instance_id"); id != nil {
		options = append(options, kgo.InstanceID(*id))
	}
	if pattern != nil {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics("^"+*pattern+"$"))
	} else {
		options = append(options, kgo.ConsumeTopics(topics...))
	}
	client, err := kgo.NewClient(options...)
	c.client = client
	return err
}

func (c *consumer) note(kind string, partitions map[string][]int32) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if len(partitions) > 0 {
		c.changes = append(c.changes, driver.Event{Kind: kind, Partitions: driver.ListOf(partitions)})
	}
}

func (c *consumer) Events() []driver.Event {
	c.guard.Lock()
	defer c.guard.Unlock()
	told := c.changes
	c.changes = nil
	return told
}

// start makes the client of partitions that were assigned.
func (c *consumer) start() error {
	if c.client != nil {
		return nil
	}
	offsets := make(map[string]map[int32]kgo.Offset)
	for _, each := range c.assigned {
		start, given := c.starts[each]
		if !given {
			start = resets[driver.Get[string](c.with, "reset")]
		}
		put(offsets, each, start)
	}
	client, err := kgo.NewClient(append(c.options(), kgo.ConsumePartitions(offsets))...)
	c.client = client
	return err
}

func put[T any](table map[string]map[int32]T, at driver.Partition, value T) {
	if table[at.Topic] == nil {
		table[at.Topic] = make(map[int32]T)
	}
	table[at.Topic][at.Number] = value
}

func (c *consumer) seek(partitions []driver.Partition, to kgo.Offset) {
	for _, each := range partitions {
		delete(c.positions, each)
		c.starts[each] = to
		if c.client != nil {
			c.client.RemoveConsumePartitions(map[string][]int32{each.Topic: {each.Number}})
			c.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{each.Topic: {each.Number: to}})
		}
	}
}

func (c *consumer) Call(operation string, with driver.Arguments) (any, error) {
	partitions := driver.Get[[]driver.Partition](with, "partitions")
	switch operation {
	case "subscribe":
		return nil, c.subscribe(driver.Get[[]string](with, "topics"), driver.Get[*string](with, "pattern"))
	case "assign":
		c.assigned = partitions
	case "seek":
		to := kgo.NewOffset().At(driver.Get[int64](with, "offset"))
		c.seek([]driver.Partition{driver.Get[driver.Partition](with, "partition")}, to)
	case "seek_to_beginning":
		c.seek(partitions, kgo.NewOffset().AtStart())
	case "seek_to_end":
		c.seek(partitions, kgo.NewOffset().AtEnd())
	case "pause":
		c.client.PauseFetchPartitions(driver.ByTopic(partitions))
	case "resume":
		c.client.ResumeFetchPartitions(driver.ByTopic(partitions))
	case "close":
		c.asking.Close()
		if c.client != nil {
			c.client.Close()
		}
	default:
		return c.ask(operation, with, partitions)
	}
	return nil, nil
}

func (c *consumer) ask(operation string, with driver.Arguments, partitions []driver.Partition) (any, error) {
	ctx, done := bounded()
	defer done()
	switch operation {
	case "poll":
		if err := c.start(); err != nil {
			return nil, err
		}
		wait := time.Duration(driver.Get[int](with, "wait_ms")) * time.Millisecond
		return poll(c.client, wait, driver.Get[int](with, "records_max"), c.positions)
	case "position":
		return c.position(ctx, driver.Get[driver.Partition](with, "partition"))
	case "commit":
		return nil, c.commit(ctx, driver.Get[[]driver.Pair[driver.Committed]](with, "offsets"))
	case "commit_soon":
		return c.commitSoon(driver.Get[[]driver.Pair[driver.Committed]](with, "offsets")), nil
	case "is_confirmed":
		return c.isConfirmed(driver.Get[int](with, "commit"))
	case "committed":
		return c.committed(ctx, partitions)
	case "bounds":
		return c.bounds(ctx, partitions)
	case "find_times":
		return c.findTimes(ctx, driver.Get[[]driver.Pair[int64]](with, "times"))
	case "partitions_of":
		return c.partitionsOf(ctx, driver.Get[string](with, "topic"))
	}
	return nil, driver.Unknown(operation)
}

// polling is a client, or a session of one.
type polling interface {
	PollRecords(ctx context.Context, recordsMax int) kgo.Fetches
}

// poll gives records that are there or come within the time, and notes what comes behind them.
func poll(
	client polling, wait time.Duration, recordsMax int, positions map[driver.Partition]int64,
) ([]driver.TakenRecord, error) {
	ctx, done := context.WithTimeout(context.Background(), wait)
	defer done()
	fetches := client.PollRecords(ctx, recordsMax)
	for _, each := range fetches.Errors() {
		if !errors.Is(each.Err, context.DeadlineExceeded) && !isRetried(each.Err) {
			return nil, each.Err
		}
	}
	records := []driver.TakenRecord{}
	fetches.EachRecord(func(record *kgo.Record) {
		records = append(records, taken(record))
		if positions != nil {
			positions[driver.At(record.Topic, record.Partition)] = record.Offset + 1
		}
	})
	return records, nil
}

// isRetried: franz-go tells of an error although it goes on by itself.
func isRetried(err error) bool {
	var answered *kerr.Error
	return errors.As(err, &answered) && answered.Retriable
}

// position of a partition without records is its end, once the client fetches: it does not tell itself.
func (c *consumer) position(ctx context.Context, of driver.Partition) (int64, error) {
	if position, known := c.positions[of]; known {
		return position, nil
	}
	if c.client == nil || !c.fetching.hasBegun() {
		return -1, nil
	}
	ends, err := c.asking.ListEndOffsets(ctx, of.Topic)
	if err != nil {
		return 0, err
	}
	end, _ := ends.Lookup(of.Topic, of.Number)
	return end.Offset, end.Err
}

func (c *consumer) commit(ctx context.Context, offsets []driver.Pair[driver.Committed]) error {
	if offsets == nil {
		if err := c.client.CommitUncommittedOffsets(ctx); err != nil {
			return driver.CommitFailed{Cause: err}
		}
		return nil
	}
	if c.client == nil || len(c.assigned) > 0 {
		return c.asking.CommitAllOffsets(ctx, c.group(), offsetsOf(offsets))
	}
	return <-c.commitAsMember(ctx, offsets)
}

func offsetsOf(offsets []driver.Pair[driver.Committed]) kadm.Offsets {
	var table kadm.Offsets
	for _, each := range offsets {
		table.Add(kadm.Offset{
			Topic: each.Of.Topic, Partition: each.Of.Number, At: each.Value.Offset, LeaderEpoch: -1,
			Metadata: each.Value.Metadata,
		})
	}
	return table
}

// commitAsMember gives a channel on which the result comes.
func (c *consumer) commitAsMember(ctx context.Context, offsets []driver.Pair[driver.Committed]) chan error {
	table := make(map[string]map[int32]kgo.EpochOffset)
	texts := make(map[driver.Partition]string)
	for _, each := range offsets {
		put(table, each.Of, kgo.EpochOffset{Epoch: -1, Offset: each.Value.Offset})
		texts[each.Of] = each.Value.Metadata
	}
	ctx = kgo.PreCommitFnContext(ctx, func(request *kmsg.OffsetCommitRequest) error {
		for t := range request.Topics {
			topic := &request.Topics[t]
			for p := range topic.Partitions {
				text := texts[driver.At(topic.Topic, topic.Partitions[p].Partition)]
				topic.Partitions[p].Metadata = &text
			}
		}
		return nil
	})
	result := make(chan error, 1)
	c.client.CommitOffsets(ctx, table,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			result <- commitError(response, err)
		})
	return result
}

func commitError(response *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return driver.CommitFailed{Cause: err}
	}
	for _, topic := range response.Topics {
		for _, each := range topic.Partitions {
			if err := kerr.ErrorForCode(each.ErrorCode); err != nil {
				return driver.CommitFailed{Cause: fmt.Errorf("%s-%d: %w", topic.Topic, each.Partition, err)}
			}
		}
	}
	return nil
}

func (c *consumer) commitSoon(offsets []driver.Pair[driver.Committed]) int {
	c.commits = append(c.commits, c.commitAsMember(context.Background(), offsets))
	return len(c.commits) - 1
}

func (c *consumer) isConfirmed(number int) (bool, error) {
	select {
	case err := <-c.commits[number]:
		return true, err
	default:
		return false, nil
	}
}

func (c *consumer) committed(
	ctx context.Context, partitions []driver.Partition,
) ([]driver.Pair[*driver.Committed], error) {
	found, err := c.asking.FetchOffsetsForTopics(ctx, c.group(), topicsOf(partitions)...)
	if err != nil {
		return nil, err
	}
	told := []driver.Pair[*driver.Committed]{}
	for _, each := range partitions {
		entry := driver.Pair[*driver.Committed]{Of: each}
		offset, known := found.Lookup(each.Topic, each.Number)
		if offset.Err != nil {
			return nil, offset.Err
		}
		if known && offset.At >= 0 {
			entry.Value = &driver.Committed{Offset: offset.At, Metadata: offset.Metadata}
		}
		told = append(told, entry)
	}
	return told, nil
}

func (c *consumer) bounds(ctx context.Context, partitions []driver.Partition) ([]driver.Pair[[2]int64], error) {
	starts, err := c.asking.ListStartOffsets(ctx, topicsOf(partitions)...)
	if err != nil {
		return nil, err
	}
	ends, err := c.asking.ListEndOffsets(ctx, topicsOf(partitions)...)
	if err != nil {
		return nil, err
	}
	told := []driver.Pair[[2]int64]{}
	for _, each := range partitions {
		start, _ := starts.Lookup(each.Topic, each.Number)
		end, _ := ends.Lookup(each.Topic, each.Number)
		if err := errors.Join(start.Err, end.Err); err != nil {
			return nil, err
		}
		told = append(told, driver.PairOf(each, [2]int64{start.Offset, end.Offset}))
	}
	return told, nil
}

func (c *consumer) findTimes(ctx context.Context, times []driver.Pair[int64]) ([]driver.Pair[*int64], error) {
	told := []driver.Pair[*int64]{}
	for _, each := range times {
		found, err := c.asking.ListOffsetsAfterMilli(ctx, each.Value, each.Of.Topic)
		if err != nil {
			return nil, err
		}
		entry := driver.Pair[*int64]{Of: each.Of}
		offset, _ := found.Lookup(each.Of.Topic, each.Of.Number)
		if offset.Err != nil {
			return nil, offset.Err
		}
		if offset.Timestamp >= 0 { // else it is the end
			entry.Value = &offset.Offset
		}
		told = append(told, entry)
	}
	return told, nil
}

func (c *consumer) partitionsOf(ctx context.Context, topic string) ([]int32, error) {
	found, err := c.asking.Metadata(ctx, topic)
	if err != nil {
		return nil, err
	}
	numbers := []int32{}
	for number := range found.Topics[topic].Partitions {
		numbers = append(numbers, number)
	}
	return numbers, nil
}
