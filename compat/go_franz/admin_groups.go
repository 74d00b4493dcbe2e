package main

import (
	driver "ottla/compat/go_driver"

	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

var groupKinds = []string{"Classic", "Consumer", "Share", "Streams"}

func (a *admin) callOnGroups(ctx context.Context, operation string, with driver.Arguments) (any, error) {
	group := driver.Get[string](with, "group")
	switch operation {
	case "list_groups":
		found, err := a.kadm.ListGroups(ctx)
		return found.Groups(), err
	case "list_group_kinds":
		return a.listGroupKinds(ctx)
	case "describe_group":
		return a.describeGroup(ctx, group)
	case "delete_group", "delete_share_group":
		response, err := a.kadm.DeleteGroup(ctx, group)
		return nil, firstError(err, response.Err)
	case "remove_member":
		responses, err := a.kadm.LeaveGroup(
			ctx, kadm.LeaveGroup(group).InstanceIDs(driver.Get[string](with, "instance_id")))
		return nil, firstError(err, responses.Error())
	case "group_offsets":
		return a.groupOffsets(ctx, group)
	case "alter_group_offsets":
		return nil, a.kadm.CommitAllOffsets(ctx, group, plainOffsets(driver.Get[[]driver.Pair[int64]](with, "offsets")))
	case "delete_group_offsets":
		responses, err := a.kadm.DeleteOffsets(ctx, group, setOf(driver.Get[[]driver.Partition](with, "partitions")))
		return nil, firstError(err, responses.Error())
	case "describe_share_group":
		return a.describeShareGroup(ctx, group)
	case "share_group_offsets":
		return a.shareGroupOffsets(ctx, group)
	case "alter_share_group_offsets":
		responses, err := a.kadm.AlterShareGroupOffsets(
			ctx, group, plainOffsets(driver.Get[[]driver.Pair[int64]](with, "offsets")))
		return nil, firstError(err, responses.Error())
	case "delete_share_group_offsets":
		responses, err := a.kadm.DeleteShareGroupOffsets(ctx, group, driver.Get[string](with, "topic"))
		return nil, firstError(err, responses.Error())
	}
	return nil, driver.Unknown(operation)
}

func plainOffsets(offsets []driver.Pair[int64]) kadm.Offsets {
	var table kadm.Offsets
	for _, each := range offsets {
		table.AddOffset(each.Of.Topic, each.Of.Number, each.Value, -1)
	}
	return table
}

func (a *admin) listGroupKinds(ctx context.Context) (map[string]string, error) {
	told := make(map[string]string)
	for _, kind := range groupKinds {
		found, err := a.kadm.ListGroupsByType(ctx, []string{kind})
		if err != nil {
			return nil, err
		}
		for group := range found {
			told[group] = kind
		}
	}
	return told, nil
}

// describeGroup describes a group of KIP-848, or else a classic one.
func (a *admin) describeGroup(ctx context.Context, group string) (*driver.Group, error) {
	groups, err := a.kadm.DescribeConsumerGroups(ctx, group)
	found := groups[group]
	if errors.Is(firstError(found.Err, err), kerr.GroupIDNotFound) {
		return a.describeClassicGroup(ctx, group)
	}
	if err := firstError(err, found.Err); err != nil {
		return nil, err
	}
	told := &driver.Group{State: found.State, Protocol: found.AssignorName, Members: []driver.Member{}}
	for _, each := range found.Members {
		told.Members = append(told.Members, driver.Member{
			MemberID:   each.MemberID,
			ClientID:   each.ClientID,
			Host:       each.ClientHost,
			InstanceID: each.InstanceID,
			Assigned:   partitionsOf(each.Assignment),
		})
	}
	return told, nil
}

func (a *admin) describeClassicGroup(ctx context.Context, group string) (*driver.Group, error) {
	groups, err := a.kadm.DescribeGroups(ctx, group)
	found := groups[group]
	if err := firstError(err, found.Err); err != nil {
		return nil, err
	}
	told := &driver.Group{State: found.State, Protocol: found.Protocol, Members: []driver.Member{}}
	for _, each := range found.Members {
		assigned := []driver.Partition{}
		if assignment, is := each.Assigned.AsConsumer(); is {
			for _, topic := range assignment.Topics {
				assigned = append(assigned, driver.ListOf(map[string][]int32{topic.Topic: topic.Partitions})...)
			}
		}
		told.Members = append(told.Members, driver.Member{
			MemberID:   each.MemberID,
			ClientID:   each.ClientID,
			Host:       each.ClientHost,
			InstanceID: each.InstanceID,
			Assigned:   assigned,
		})
	}
	return told, nil
}

func (a *admin) describeShareGroup(ctx context.Context, group string) (*driver.Group, error) {
	groups, err := a.kadm.DescribeShareGroups(ctx, group)
	found := groups[group]
	if err := firstError(err, found.Err); err != nil {
		return nil, err
	}
	told := &driver.Group{State: found.GroupState, Members: []driver.Member{}}
	for _, each := range found.Members {
		told.Members = append(told.Members, driver.Member{
			MemberID: each.MemberID,
			ClientID: each.ClientID,
			Host:     each.ClientHost,
			Assigned: partitionsOf(each.Assignment),
		})
	}
	return told, nil
}

func partitionsOf(set kadm.TopicsSet) []driver.Partition {
	list := []driver.Partition{}
	set.Each(func(topic string, number int32) {
		list = append(list, driver.At(topic, number))
	})
	return list
}

func (a *admin) groupOffsets(ctx context.Context, group string) ([]driver.Pair[driver.Committed], error) {
	found, err := a.kadm.FetchOffsets(ctx, group)
	told := []driver.Pair[driver.Committed]{}
	found.Each(func(each kadm.OffsetResponse) {
		err = firstError(err, each.Err)
		found := driver.Committed{Offset: each.At, Metadata: each.Metadata}
		told = append(told, driver.PairOf(driver.At(each.Topic, each.Partition), found))
	})
	return told, err
}

func (a *admin) shareGroupOffsets(ctx context.Context, group string) ([]driver.Pair[int64], error) {
	groups, err := a.kadm.DescribeShareGroupOffsets(ctx, group)
	found := groups[group]
	if err := firstError(err, found.Err, found.Offsets.Error()); err != nil {
		return nil, err
	}
	told := []driver.Pair[int64]{}
	found.Offsets.Each(func(each kadm.ShareOffset) {
		told = append(told, driver.PairOf(driver.At(each.Topic, each.Partition), each.StartOffset))
	})
	return told, nil
}
