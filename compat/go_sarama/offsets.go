package main

import (
	"errors"

	"github.com/IBM/sarama"

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
		return c.commitSoon(offsets)
	case "is_confirmed":
		select {
		case <-c.commits[driver.Get[int](with, "commit")]:
			return true, nil
		default:
			return false, nil
		}
	case "committed":
		return c.committed(partitions)
	case "bounds":
		told := []driver.Pair[[2]int64]{}
		for _, each := range partitions {
			first, err := c.client.GetOffset(each.Topic, each.Number, sarama.OffsetOldest)
			if err != nil {
				return nil, err
			}
			end, err := c.client.GetOffset(each.Topic, each.Number, sarama.OffsetNewest)
			if err != nil {
				return nil, err
			}
			told = append(told, driver.PairOf(each, [2]int64{first, end}))
		}
		return told, nil
	case "find_times":
		return c.findTimes(driver.Get[[]driver.Pair[int64]](with, "times"))
	case "partitions_of":
		numbers, err := c.client.Partitions(driver.Get[string](with, "topic"))
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return []int32{}, nil
		}
		return numbers, err
	}
	return nil, driver.Unknown(operation)
}

func (c *consumer) commit(offsets []driver.Pair[driver.Committed]) error {
	if c.member == nil {
		return c.commitUnjoined(offsets)
	}
	c.mark(offsets)
	c.member.commit()
	return nil
}

// mark says what to commit: these, or the positions.
func (c *consumer) mark(offsets []driver.Pair[driver.Committed]) {
	if offsets == nil {
		c.guard.Lock()
		for at, position := range c.positions {
			offsets = append(offsets, driver.PairOf(at, driver.Committed{Offset: position}))
		}
		c.guard.Unlock()
	}
	for _, each := range offsets {
		c.member.mark(each.Of, each.Value)
	}
}

func (c *consumer) commitSoon(offsets []driver.Pair[driver.Committed]) (int, error) {
	c.mark(offsets)
	done := make(chan struct{})
	go func() {
		c.member.commit()
		close(done)
	}()
	c.commits = append(c.commits, done)
	return len(c.commits) - 1, nil
}

func (c *consumer) commitUnjoined(offsets []driver.Pair[driver.Committed]) error {
	manager, err := sarama.NewOffsetManagerFromClient(c.group(), c.client)
	if err != nil {
		return err
	}
	for _, each := range offsets {
		partition, err := manager.ManagePartition(each.Of.Topic, each.Of.Number)
		if err != nil {
			return err
		}
		partition.MarkOffset(each.Value.Offset, each.Value.Metadata)
		partition.ResetOffset(each.Value.Offset, each.Value.Metadata)
		partition.AsyncClose()
	}
	manager.Commit()
	return manager.Close()
}

func (c *consumer) committed(partitions []driver.Partition) (any, error) {
	found, err := c.admin.ListConsumerGroupOffsets(c.group(), driver.ByTopic(partitions))
	if err != nil {
		return nil, err
	}
	told := []driver.Pair[*driver.Committed]{}
	for _, each := range partitions {
		entry := driver.Pair[*driver.Committed]{Of: each}
		block := found.GetBlock(each.Topic, each.Number)
		if block != nil && block.Err != sarama.ErrNoError {
			return nil, block.Err
		}
		if block != nil && block.Offset >= 0 {
			entry.Value = &driver.Committed{Offset: block.Offset, Metadata: block.Metadata}
		}
		told = append(told, entry)
	}
	return told, nil
}

func (c *consumer) findTimes(times []driver.Pair[int64]) (any, error) {
	told := []driver.Pair[*int64]{}
	for _, each := range times {
		offset, err := c.client.GetOffset(each.Of.Topic, each.Of.Number, each.Value)
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
