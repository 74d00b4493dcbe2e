package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

var groupKinds = []string{"Classic", "Consumer", "Share", "Streams"}

func (a *admin) callOnGroups(ctx context.Context, operation string, with arguments) (any, error) {
	group := get[string](with, "group")
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
			ctx, kadm.LeaveGroup(group).InstanceIDs(get[string](with, "instance_id")))
		return nil, firstError(err, responses.Error())
	case "group_offsets":
		return a.groupOffsets(ctx, group)
	case "alter_group_offsets":
		return nil, a.kadm.CommitAllOffsets(ctx, group, plainOffsets(get[[]pair[int64]](with, "offsets")))
	case "delete_group_offsets":
		responses, err := a.kadm.DeleteOffsets(ctx, group, setOf(get[[]partition](with, "partitions")))
		return nil, firstError(err, responses.Error())
	case "describe_share_group":
		return a.describeShareGroup(ctx, group)
	case "share_group_offsets":
		return a.shareGroupOffsets(ctx, group)
	case "alter_share_group_offsets":
		responses, err := a.kadm.AlterShareGroupOffsets(
			ctx, group, plainOffsets(get[[]pair[int64]](with, "offsets")))
		return nil, firstError(err, responses.Error())
	case "delete_share_group_offsets":
		responses, err := a.kadm.DeleteShareGroupOffsets(ctx, group, get[string](with, "topic"))
		return nil, firstError(err, responses.Error())
	}
	return nil, unknown(operation)
}

func plainOffsets(offsets []pair[int64]) kadm.Offsets {
	var table kadm.Offsets
	for _, each := range offsets {
		table.AddOffset(each.of.topic, each.of.number, each.value, -1)
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

type toldGroup struct {
	State    string       `json:"state"`
	Protocol string       `json:"protocol"`
	Members  []toldMember `json:"members"`
}

type toldMember struct {
	MemberID   string      `json:"member_id"`
	ClientID   string      `json:"client_id"`
	Host       string      `json:"host"`
	InstanceID *string     `json:"instance_id"`
	Assigned   []partition `json:"assigned"`
}

// describeGroup describes a group of KIP-848, or else a classic one.
func (a *admin) describeGroup(ctx context.Context, group string) (*toldGroup, error) {
	groups, err := a.kadm.DescribeConsumerGroups(ctx, group)
	found := groups[group]
	if errors.Is(firstError(found.Err, err), kerr.GroupIDNotFound) {
		return a.describeClassicGroup(ctx, group)
	}
	if err := firstError(err, found.Err); err != nil {
		return nil, err
	}
	told := &toldGroup{found.State, found.AssignorName, []toldMember{}}
	for _, each := range found.Members {
		told.Members = append(told.Members, toldMember{
			each.MemberID, each.ClientID, each.ClientHost, each.InstanceID, partitionsOf(each.Assignment),
		})
	}
	return told, nil
}

func (a *admin) describeClassicGroup(ctx context.Context, group string) (*toldGroup, error) {
	groups, err := a.kadm.DescribeGroups(ctx, group)
	found := groups[group]
	if err := firstError(err, found.Err); err != nil {
		return nil, err
	}
	told := &toldGroup{found.State, found.Protocol, []toldMember{}}
	for _, each := range found.Members {
		assigned := []partition{}
		if assignment, is := each.Assigned.AsConsumer(); is {
			for _, topic := range assignment.Topics {
				assigned = append(assigned, listOf(map[string][]int32{topic.Topic: topic.Partitions})...)
			}
		}
		told.Members = append(told.Members, toldMember{
			each.MemberID, each.ClientID, each.ClientHost, each.InstanceID, assigned,
		})
	}
	return told, nil
}

func (a *admin) describeShareGroup(ctx context.Context, group string) (*toldGroup, error) {
	groups, err := a.kadm.DescribeShareGroups(ctx, group)
	found := groups[group]
	if err := firstError(err, found.Err); err != nil {
		return nil, err
	}
	told := &toldGroup{found.GroupState, "", []toldMember{}}
	for _, each := range found.Members {
		told.Members = append(told.Members, toldMember{
			each.MemberID, each.ClientID, each.ClientHost, nil, partitionsOf(each.Assignment),
		})
	}
	return told, nil
}

func partitionsOf(set kadm.TopicsSet) []partition {
	list := []partition{}
	set.Each(func(topic string, number int32) {
		list = append(list, partition{topic, number})
	})
	return list
}

func (a *admin) groupOffsets(ctx context.Context, group string) ([]pair[committed], error) {
	found, err := a.kadm.FetchOffsets(ctx, group)
	told := []pair[committed]{}
	found.Each(func(each kadm.OffsetResponse) {
		err = firstError(err, each.Err)
		told = append(told, pair[committed]{
			partition{each.Topic, each.Partition}, committed{each.At, each.Metadata},
		})
	})
	return told, err
}

func (a *admin) shareGroupOffsets(ctx context.Context, group string) ([]pair[int64], error) {
	groups, err := a.kadm.DescribeShareGroupOffsets(ctx, group)
	found := groups[group]
	if err := firstError(err, found.Err, found.Offsets.Error()); err != nil {
		return nil, err
	}
	told := []pair[int64]{}
	found.Offsets.Each(func(each kadm.ShareOffset) {
		told = append(told, pair[int64]{partition{each.Topic, each.Partition}, each.StartOffset})
	})
	return told, nil
}
