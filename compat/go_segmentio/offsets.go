package main

import (
	"time"

	"github.com/segmentio/kafka-go"

	driver "ottla/compat/go_driver"
)

func (c *consumer) callOnOffsets(
	operation string, with driver.Arguments, partitions []driver.Partition,
) (any, error) {
	offsets := driver.Get[[]driver.Pair[driver.Committed]](with, "offsets")
	switch operation {
	case "commit":
		return nil, c.commit(offsets)
	case "commit_soon":
		done := make(chan error, 1)
		go func() { done <- c.commit(offsets) }()
		c.commits = append(c.commits, done)
		return len(c.commits) - 1, nil
	case "is_confirmed":
		select {
		case err := <-c.commits[driver.Get[int](with, "commit")]:
			return err == nil, err
		default:
			return false, nil
		}
	case "committed":
		return c.committed(partitions)
	case "bounds":
		return c.bounds(partitions)
	case "find_times":
		return c.findTimes(driver.Get[[]driver.Pair[int64]](with, "times"))
	case "partitions_of":
		return partitionsOf(c.client, driver.Get[string](with, "topic"))
	}
	return nil, driver.Unknown(operation)
}

// commit commits these offsets, or the positions, as a member of the group or without one.
func (c *consumer) commit(offsets []driver.Pair[driver.Committed]) error {
	if offsets == nil {
		c.guard.Lock()
		for at, position := range c.positions {
			offsets = append(offsets, driver.PairOf(at, driver.Committed{Offset: position}))
		}
		c.guard.Unlock()
	}
	asked := &kafka.OffsetCommitRequest{GroupID: c.groupID(), GenerationID: -1}
	if joined, is := c.group.(*member); is {
		joined.guard.Lock()
		asked.GenerationID, asked.MemberID = int(joined.generation.ID), joined.generation.MemberID
		joined.guard.Unlock()
	}
	if err := commitOffsets(c.client, asked, offsets); err != nil {
		return driver.CommitFailed{Cause: err}
	}
	return nil
}

func commitOffsets(
	client *kafka.Client, asked *kafka.OffsetCommitRequest, offsets []driver.Pair[driver.Committed],
) error {
	asked.Topics = make(map[string][]kafka.OffsetCommit)
	for _, each := range offsets {
		asked.Topics[each.Of.Topic] = append(asked.Topics[each.Of.Topic], kafka.OffsetCommit{
			Partition: int(each.Of.Number), Offset: each.Value.Offset, Metadata: each.Value.Metadata,
		})
	}
	ctx, cancel := patiently()
	defer cancel()
	answer, err := client.OffsetCommit(ctx, asked)
	if err != nil {
		return err
	}
	for _, partitions := range answer.Topics {
		for _, each := range partitions {
			if each.Error != nil {
				return each.Error
			}
		}
	}
	return nil
}

// fetchOffsets gives what a group has committed for these partitions, or everything.
func fetchOffsets(
	client *kafka.Client, group string, topics map[string][]int,
) (map[driver.Partition]driver.Committed, error) {
	ctx, cancel := patiently()
	defer cancel()
	answer, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: topics})
	if err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	found := make(map[driver.Partition]driver.Committed)
	for topic, partitions := range answer.Topics {
		for _, each := range partitions {
			if each.Error != nil {
				return nil, each.Error
			}
			if each.CommittedOffset >= 0 {
				found[driver.At(topic, int32(each.Partition))] = driver.Committed{
					Offset: each.CommittedOffset, Metadata: each.Metadata,
				}
			}
		}
	}
	return found, nil
}

func (c *consumer) committed(partitions []driver.Partition) (any, error) {
	topics := make(map[string][]int)
	for _, each := range partitions {
		topics[each.Topic] = append(topics[each.Topic], int(each.Number))
	}
	found, err := fetchOffsets(c.client, c.groupID(), topics)
	if err != nil {
		return nil, err
	}
	told := []driver.Pair[*driver.Committed]{}
	for _, each := range partitions {
		entry := driver.Pair[*driver.Committed]{Of: each}
		if committed, known := found[each]; known {
			entry.Value = &committed
		}
		told = append(told, entry)
	}
	return told, nil
}

// find looks up an offset by a time in milliseconds, or by one of kafka-go's names for the first and the last.
func (c *consumer) find(at driver.Partition, timestamp int64) (int64, error) {
	ctx, cancel := patiently()
	defer cancel()
	asked := kafka.OffsetRequest{Partition: int(at.Number), Timestamp: timestamp}
	answer, err := c.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{at.Topic: {asked}},
	})
	if err != nil {
		return 0, err
	}
	found := answer.Topics[at.Topic][0]
	if found.Error != nil {
		return 0, found.Error
	}
	switch timestamp {
	case kafka.FirstOffset:
		return found.FirstOffset, nil
	case kafka.LastOffset:
		return found.LastOffset, nil
	}
	for offset := range found.Offsets {
		return offset, nil
	}
	return -1, nil
}

func (c *consumer) bounds(partitions []driver.Partition) (any, error) {
	told := []driver.Pair[[2]int64]{}
	for _, each := range partitions {
		first, err := c.find(each, kafka.FirstOffset)
		if err != nil {
			return nil, err
		}
		end, err := c.find(each, kafka.LastOffset)
		if err != nil {
			return nil, err
		}
		told = append(told, driver.PairOf(each, [2]int64{first, end}))
	}
	return told, nil
}

func (c *consumer) findTimes(times []driver.Pair[int64]) (any, error) {
	told := []driver.Pair[*int64]{}
	for _, each := range times {
		offset, err := c.find(each.Of, kafka.TimeOffsetOf(0, time.UnixMilli(each.Value)).Timestamp)
		if err != nil {
			return nil, err
		}
		entry := driver.Pair[*int64]{Of: each.Of}
		if offset >= 0 {
			entry.Value = &offset
		}
		told = append(told, entry)
	}
	return told, nil
}
