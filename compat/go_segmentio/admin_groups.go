package main

import (
	"github.com/segmentio/kafka-go"

	driver "ottla/compat/go_driver"
)

func (a *admin) callOnGroups(operation string, with driver.Arguments) (any, error) {
	group := driver.Get[string](with, "group")
	switch operation {
	case "list_groups":
		return a.listGroups()
	case "describe_group":
		return a.describeGroup(group)
	case "delete_group":
		ctx, cancel := patiently()
		defer cancel()
		answer, err := a.client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
		if err != nil {
			return nil, err
		}
		return nil, answer.Errors[group]
	case "group_offsets":
		return a.groupOffsets(group)
	case "alter_group_offsets":
		offsets := []driver.Pair[driver.Committed]{}
		for _, each := range driver.Get[[]driver.Pair[int64]](with, "offsets") {
			offsets = append(offsets, driver.PairOf(each.Of, driver.Committed{Offset: each.Value}))
		}
		return nil, commitOffsets(a.client, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1}, offsets)
	case "delete_group_offsets":
		return nil, a.deleteGroupOffsets(group, driver.Get[[]driver.Partition](with, "partitions"))
	}
	return nil, missing(operation)
}

func (a *admin) listGroups() ([]string, error) {
	ctx, cancel := patiently()
	defer cancel()
	found, err := a.client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, each := range found.Groups {
		names = append(names, each.GroupID)
	}
	return names, found.Error
}

func (a *admin) describeGroup(group string) (*driver.Group, error) {
	ctx, cancel := patiently()
	defer cancel()
	answer, err := a.client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return nil, err
	}
	found := answer.Groups[0]
	if found.Error != nil {
		return nil, found.Error
	}
	told := &driver.Group{State: found.GroupState, Members: []driver.Member{}}
	for _, each := range found.Members {
		assigned := []driver.Partition{}
		for _, topic := range each.MemberAssignments.Topics {
			for _, number := range topic.Partitions {
				assigned = append(assigned, driver.At(topic.Topic, int32(number)))
			}
		}
		told.Members = append(told.Members, driver.Member{
			MemberID: each.MemberID,
			ClientID: each.ClientID,
			Host:     each.ClientHost,
			Assigned: assigned,
		})
	}
	return told, nil
}

func (a *admin) groupOffsets(group string) ([]driver.Pair[driver.Committed], error) {
	found, err := fetchOffsets(a.client, group, nil)
	told := []driver.Pair[driver.Committed]{}
	for at, committed := range found {
		told = append(told, driver.PairOf(at, committed))
	}
	return told, err
}

func (a *admin) deleteGroupOffsets(group string, partitions []driver.Partition) error {
	topics := make(map[string][]int)
	for _, each := range partitions {
		topics[each.Topic] = append(topics[each.Topic], int(each.Number))
	}
	ctx, cancel := patiently()
	defer cancel()
	answer, err := a.client.OffsetDelete(ctx, &kafka.OffsetDeleteRequest{GroupID: group, Topics: topics})
	if err != nil {
		return err
	}
	for _, deleted := range answer.Topics {
		for _, each := range deleted {
			if each.Error != nil {
				return each.Error
			}
		}
	}
	return answer.Error
}
