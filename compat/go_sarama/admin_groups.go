package main

import (
	"github.com/IBM/sarama"

	driver "ottla/compat/go_driver"
)

func (a *admin) callOnGroups(operation string, with driver.Arguments) (any, error) {
	group := driver.Get[string](with, "group")
	switch operation {
	case "list_groups":
		found, err := a.ListConsumerGroups()
		names := []string{}
		for each := range found {
			names = append(names, each)
		}
		return names, err
	case "describe_group":
		return a.describeGroup(group)
	case "delete_group":
		return nil, a.DeleteConsumerGroup(group)
	case "remove_member":
		found, err := a.RemoveMemberFromConsumerGroup(group, []string{driver.Get[string](with, "instance_id")})
		if err != nil {
			return nil, err
		}
		for _, each := range found.Members {
			if each.Err != sarama.ErrNoError {
				return nil, each.Err
			}
		}
		return nil, nil
	case "group_offsets":
		return a.groupOffsets(group)
	case "alter_group_offsets":
		return nil, a.alterGroupOffsets(group, driver.Get[[]driver.Pair[int64]](with, "offsets"))
	case "delete_group_offsets":
		for _, each := range driver.Get[[]driver.Partition](with, "partitions") {
			if err := a.DeleteConsumerGroupOffset(group, each.Topic, each.Number); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return nil, missing(operation)
}

func (a *admin) describeGroup(group string) (*driver.Group, error) {
	groups, err := a.DescribeConsumerGroups([]string{group})
	if err != nil {
		return nil, err
	}
	found := groups[0]
	if found.Err != sarama.ErrNoError {
		return nil, found.Err
	}
	told := &driver.Group{State: found.State, Protocol: found.Protocol, Members: []driver.Member{}}
	for _, each := range found.Members {
		assignment, err := each.GetMemberAssignment()
		if err != nil {
			return nil, err
		}
		assigned := []driver.Partition{}
		if assignment != nil {
			assigned = driver.ListOf(assignment.Topics)
		}
		told.Members = append(told.Members, driver.Member{
			MemberID:   each.MemberId,
			ClientID:   each.ClientId,
			Host:       each.ClientHost,
			InstanceID: each.GroupInstanceId,
			Assigned:   assigned,
		})
	}
	return told, nil
}

func (a *admin) groupOffsets(group string) ([]driver.Pair[driver.Committed], error) {
	found, err := a.ListConsumerGroupOffsets(group, nil)
	if err != nil {
		return nil, err
	}
	told := []driver.Pair[driver.Committed]{}
	for topic, blocks := range found.Blocks {
		for number, block := range blocks {
			if block.Err != sarama.ErrNoError {
				return nil, block.Err
			}
			committed := driver.Committed{Offset: block.Offset, Metadata: block.Metadata}
			told = append(told, driver.PairOf(driver.At(topic, number), committed))
		}
	}
	return told, nil
}

func (a *admin) alterGroupOffsets(group string, offsets []driver.Pair[int64]) error {
	asked := make(map[string]map[int32]sarama.OffsetAndMetadata)
	for _, each := range offsets {
		if asked[each.Of.Topic] == nil {
			asked[each.Of.Topic] = make(map[int32]sarama.OffsetAndMetadata)
		}
		asked[each.Of.Topic][each.Of.Number] = sarama.OffsetAndMetadata{Offset: each.Value, LeaderEpoch: -1}
	}
	found, err := a.AlterConsumerGroupOffsets(group, asked, nil)
	if err != nil {
		return err
	}
	for _, numbers := range found.Errors {
		for _, code := range numbers {
			if code != sarama.ErrNoError {
				return code
			}
		}
	}
	return nil
}
