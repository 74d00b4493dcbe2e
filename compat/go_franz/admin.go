package main

import (
	driver "ottla/compat/go_driver"

	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// An admin carries out administrative calls with kadm, and with single requests where kadm has no call.
type admin struct {
	client *kgo.Client
	kadm   *kadm.Client
}

func newAdmin(with driver.Arguments) (driver.Subject, error) {
	client, err := kgo.NewClient(common(with)...)
	if err != nil {
		return nil, err
	}
	return &admin{client, kadm.NewClient(client)}, nil
}

func (a *admin) Call(operation string, with driver.Arguments) (any, error) {
	ctx, done := bounded()
	defer done()
	switch operation {
	case "create_topic":
		return nil, a.createTopic(ctx, with)
	case "delete_topic":
		response, err := a.kadm.DeleteTopic(ctx, driver.Get[string](with, "name"))
		return nil, firstError(err, response.Err)
	case "list_topics":
		found, err := a.kadm.ListTopicsWithInternal(ctx)
		return found.Names(), err
	case "describe_topic":
		return a.describeTopic(ctx, driver.Get[string](with, "name"))
	case "describe_topic_by_pages":
		return a.describeTopicByPages(ctx, driver.Get[string](with, "name"), driver.Get[int32](with, "page_size"))
	case "create_partitions":
		topic := driver.Get[string](with, "topic")
		responses, err := a.kadm.UpdatePartitions(ctx, driver.Get[int](with, "total_count"), topic)
		return nil, firstError(err, responses[topic].Err)
	case "describe_cluster":
		return a.describeCluster(ctx)
	case "describe_settings":
		return a.describeSettings(ctx, driver.Get[string](with, "kind"), driver.Get[string](with, "name"))
	case "replace_settings":
		settings := driver.Get[map[string]string](with, "settings")
		return nil, a.replaceSettings(ctx, driver.Get[string](with, "topic"), settings)
	case "change_settings":
		return nil, a.changeSettings(ctx, with)
	case "list_config_resources":
		return a.listConfigResources(ctx)
	case "delete_records":
		return a.deleteRecords(ctx, driver.Get[[]driver.Pair[int64]](with, "before"))
	case "find_offsets":
		return a.findOffsets(ctx, driver.Get[driver.Partition](with, "partition"))
	case "log_sizes":
		return a.logSizes(ctx, driver.Get[string](with, "topic"))
	case "api_versions":
		return a.apiVersions(ctx)
	case "close":
		a.kadm.Close()
		return nil, nil
	}
	if strings.Contains(operation, "transaction") || strings.Contains(operation, "producer") {
		return a.callOnTransactions(ctx, operation, with)
	}
	return a.callOnGroups(ctx, operation, with)
}

// firstError gives the first of several errors that is one.
func firstError(several ...error) error {
	for _, err := range several {
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *admin) createTopic(ctx context.Context, with driver.Arguments) error {
	settings := make(map[string]*string)
	for name, value := range driver.Get[map[string]string](with, "settings") {
		settings[name] = &value
	}
	create := a.kadm.CreateTopics
	if driver.Get[bool](with, "validate_only") {
		create = a.kadm.ValidateCreateTopics
	}
	name := driver.Get[string](with, "name")
	responses, err := create(
		ctx, driver.Get[int32](with, "partition_count"), driver.Get[int16](with, "replication_factor"), settings, name)
	return firstError(err, responses[name].Err)
}

func (a *admin) describeTopic(ctx context.Context, name string) ([]driver.PartitionDescription, error) {
	found, err := a.kadm.ListTopics(ctx, name)
	topic := found[name]
	if err := firstError(err, topic.Err); err != nil {
		return nil, err
	}
	told := []driver.PartitionDescription{}
	for _, each := range topic.Partitions.Sorted() {
		told = append(told, driver.PartitionDescription{each.Partition, each.Leader, each.Replicas, each.ISR})
	}
	return told, nil
}

func (a *admin) describeTopicByPages(
	ctx context.Context, name string, size int32,
) ([][]driver.PartitionDescription, error) {
	request := kmsg.NewPtrDescribeTopicPartitionsRequest()
	topic := kmsg.NewDescribeTopicPartitionsRequestTopic()
	topic.Topic = name
	request.Topics = append(request.Topics, topic)
	request.ResponsePartitionLimit = size
	pages := [][]driver.PartitionDescription{}
	for {
		response, err := request.RequestWith(ctx, a.client)
		if err != nil {
			return nil, err
		}
		page := []driver.PartitionDescription{}
		for _, topic := range response.Topics {
			if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
				return nil, err
			}
			for _, each := range topic.Partitions {
				page = append(page, driver.PartitionDescription{each.Partition, each.LeaderID, each.Replicas, each.ISR})
			}
		}
		pages = append(pages, page)
		if response.NextCursor == nil {
			return pages, nil
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = response.NextCursor.Topic, response.NextCursor.Partition
		request.Cursor = &cursor
	}
}

func (a *admin) describeCluster(ctx context.Context) (any, error) {
	found, err := a.kadm.BrokerMetadata(ctx)
	brokers := []any{}
	for _, each := range found.Brokers {
		brokers = append(brokers, []any{each.NodeID, fmt.Sprintf("%s:%d", each.Host, each.Port)})
	}
	return []any{found.Cluster, found.Controller, brokers}, err
}

var kinds = map[string]kmsg.ConfigResourceType{
	"topic":          kmsg.ConfigResourceTypeTopic,
	"broker":         kmsg.ConfigResourceTypeBroker,
	"broker-logger":  kmsg.ConfigResourceTypeBrokerLogger,
	"client-metrics": kmsg.ConfigResourceTypeClientMetrics,
	"group":          kmsg.ConfigResourceTypeGroupConfig,
}

func (a *admin) describeSettings(ctx context.Context, kind, name string) (map[string]*string, error) {
	var found kadm.ResourceConfigs
	var err error
	switch kind {
	case "topic":
		found, err = a.kadm.DescribeTopicConfigs(ctx, name)
	case "broker":
		found, err = a.kadm.DescribeBrokerConfigs(ctx, brokerID(name))
	default:
		return nil, driver.NotOffered("it describes settings of topics and brokers only")
	}
	if err != nil {
		return nil, err
	}
	described, err := found.On(name, nil)
	told := make(map[string]*string)
	for _, each := range described.Configs {
		told[each.Key] = each.Value
	}
	return told, firstError(err, described.Err)
}

func brokerID(name string) int32 {
	var id int32
	if _, err := fmt.Sscan(name, &id); err != nil {
		panic(err)
	}
	return id
}

func (a *admin) replaceSettings(ctx context.Context, topic string, settings map[string]string) error {
	var changes []kadm.AlterConfig
	for name, value := range settings {
		changes = append(changes, kadm.AlterConfig{Name: name, Value: &value})
	}
	responses, err := a.kadm.AlterTopicConfigsState(ctx, changes, topic)
	return alterError(responses, err)
}

func alterError(responses kadm.AlterConfigsResponses, err error) error {
	for _, each := range responses {
		err = firstError(err, each.Err)
	}
	return err
}

func (a *admin) changeSettings(ctx context.Context, with driver.Arguments) error {
	var changes []kadm.AlterConfig
	for name, value := range driver.Get[map[string]string](with, "put") {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	for _, name := range driver.Get[[]string](with, "remove") {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	for name, value := range driver.Get[map[string]string](with, "append") {
		changes = append(changes, kadm.AlterConfig{Op: kadm.AppendConfig, Name: name, Value: &value})
	}
	name := driver.Get[string](with, "name")
	switch kind := driver.Get[string](with, "kind"); kind {
	case "topic":
		responses, err := a.kadm.AlterTopicConfigs(ctx, changes, name)
		return alterError(responses, err)
	case "broker":
		responses, err := a.kadm.AlterBrokerConfigs(ctx, changes, brokerID(name))
		return alterError(responses, err)
	default:
		return a.changeOthers(ctx, kinds[kind], name, changes)
	}
}

// changeOthers changes settings of what kadm has no call for.
func (a *admin) changeOthers(
	ctx context.Context, kind kmsg.ConfigResourceType, name string, changes []kadm.AlterConfig,
) error {
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kind, name
	for _, each := range changes {
		change := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		change.Name, change.Value = each.Name, each.Value
		change.Op = kmsg.IncrementalAlterConfigOp(each.Op)
		resource.Configs = append(resource.Configs, change)
	}
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(ctx, a.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Resources[0].ErrorCode)
}

func (a *admin) listConfigResources(ctx context.Context) (any, error) {
	found, err := a.kadm.ListConfigResources(ctx)
	told := [][2]string{}
	for _, each := range found.Resources {
		for kind, number := range kinds {
			if each.Type == kadm.ConfigResourceType(number) {
				told = append(told, [2]string{kind, each.Name})
			}
		}
	}
	return told, firstError(err, found.Err)
}

func (a *admin) deleteRecords(ctx context.Context, before []driver.Pair[int64]) ([]driver.Pair[int64], error) {
	var offsets kadm.Offsets
	for _, each := range before {
		offsets.AddOffset(each.Of.Topic, each.Of.Number, each.Value, -1)
	}
	responses, err := a.kadm.DeleteRecords(ctx, offsets)
	told := []driver.Pair[int64]{}
	for _, each := range responses.Sorted() {
		err = firstError(err, each.Err)
		told = append(told, driver.PairOf(driver.At(each.Topic, each.Partition), each.LowWatermark))
	}
	return told, err
}

func (a *admin) findOffsets(ctx context.Context, of driver.Partition) (map[string][2]int64, error) {
	told := make(map[string][2]int64)
	for name, list := range map[string]func(context.Context, ...string) (kadm.ListedOffsets, error){
		"earliest":       a.kadm.ListStartOffsets,
		"latest":         a.kadm.ListEndOffsets,
		"max-timestamp":  a.kadm.ListMaxTimestampOffsets,
		"earliest-local": a.kadm.ListLocalLogStartOffsets,
		"latest-tiered":  a.kadm.ListLatestRemoteOffsets,
	} {
		found, err := list(ctx, of.Topic)
		offset, known := found.Lookup(of.Topic, of.Number)
		if err := firstError(err, offset.Err); err != nil {
			return nil, err
		}
		if !known {
			return nil, errors.New("no offset for the partition")
		}
		told[name] = [2]int64{offset.Offset, offset.Timestamp}
	}
	return told, nil
}

func (a *admin) logSizes(ctx context.Context, topic string) ([][2]int64, error) {
	found, err := a.kadm.DescribeAllLogDirs(ctx, nil)
	told := [][2]int64{}
	found.Each(func(directory kadm.DescribedLogDir) {
		for number, each := range directory.Topics[topic] {
			told = append(told, [2]int64{int64(number), each.Size})
		}
	})
	return told, err
}

func (a *admin) apiVersions(ctx context.Context) ([][3]int16, error) {
	found, err := a.kadm.ApiVersions(ctx)
	told := [][3]int16{}
	for _, broker := range found {
		err = firstError(err, broker.Err)
		broker.EachKeySorted(func(key, first, last int16) {
			told = append(told, [3]int16{key, first, last})
		})
	}
	return told, err
}
