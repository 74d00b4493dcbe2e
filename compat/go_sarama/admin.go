package main

import (
	"strings"

	"github.com/IBM/sarama"

	driver "ottla/compat/go_driver"
)

// An admin carries out administrative calls.
type admin struct {
	sarama.ClusterAdmin
	client sarama.Client
}

func newAdmin(with driver.Arguments) (driver.Subject, error) {
	client, err := sarama.NewClient(addresses(with), settings(with))
	if err != nil {
		return nil, err
	}
	opened, err := sarama.NewClusterAdminFromClient(client)
	return &admin{opened, client}, err
}

func (a *admin) Call(operation string, with driver.Arguments) (any, error) {
	name := driver.Get[string](with, "name")
	switch operation {
	case "create_topic":
		return nil, a.createTopic(name, with)
	case "delete_topic":
		return nil, a.DeleteTopic(name)
	case "list_topics":
		found, err := a.ListTopics()
		names := []string{}
		for each := range found {
			names = append(names, each)
		}
		return names, err
	case "describe_topic":
		return a.describeTopic(name)
	case "create_partitions":
		topic, count := driver.Get[string](with, "topic"), driver.Get[int32](with, "total_count")
		return nil, a.CreatePartitions(topic, count, nil, false)
	case "describe_cluster":
		return a.describeCluster()
	case "describe_settings":
		return a.describeSettings(driver.Get[string](with, "kind"), name)
	case "replace_settings":
		entries := make(map[string]*string)
		for setting, value := range driver.Get[map[string]string](with, "settings") {
			entries[setting] = &value
		}
		return nil, a.AlterConfig(sarama.TopicResource, driver.Get[string](with, "topic"), entries, false)
	case "change_settings":
		return nil, a.changeSettings(name, with)
	case "delete_records":
		return a.deleteRecords(driver.Get[[]driver.Pair[int64]](with, "before"))
	case "find_offsets":
		return nil, driver.NotOffered("it does not find the record with the latest timestamp")
	case "log_sizes":
		return a.logSizes(driver.Get[string](with, "topic"))
	case "close":
		return nil, a.Close()
	}
	return a.callOnGroups(operation, with)
}

// missing says that there is no such call.
func missing(operation string) error {
	return driver.NotOffered("its admin client has no such call: " + strings.ReplaceAll(operation, "_", " "))
}

func (a *admin) createTopic(name string, with driver.Arguments) error {
	detail := &sarama.TopicDetail{
		NumPartitions:     driver.Get[int32](with, "partition_count"),
		ReplicationFactor: driver.Get[int16](with, "replication_factor"),
		ConfigEntries:     make(map[string]*string),
	}
	for setting, value := range driver.Get[map[string]string](with, "settings") {
		detail.ConfigEntries[setting] = &value
	}
	return a.CreateTopic(name, detail, driver.Get[bool](with, "validate_only"))
}

func (a *admin) describeTopic(name string) ([]driver.PartitionDescription, error) {
	found, err := a.DescribeTopics([]string{name})
	if err != nil {
		return nil, err
	}
	if found[0].Err != sarama.ErrNoError {
		return nil, found[0].Err
	}
	told := make([]driver.PartitionDescription, len(found[0].Partitions))
	for _, each := range found[0].Partitions {
		told[each.ID] = driver.PartitionDescription{each.ID, each.Leader, each.Replicas, each.Isr}
	}
	return told, nil
}

func (a *admin) describeCluster() (any, error) {
	controller, err := a.client.Controller()
	if err != nil {
		return nil, err
	}
	found, err := controller.GetMetadata(sarama.NewMetadataRequest(a.client.Config().Version, []string{}))
	if err != nil {
		return nil, err
	}
	brokers := []any{}
	for _, each := range found.Brokers {
		brokers = append(brokers, []any{each.ID(), each.Addr()})
	}
	return []any{found.ClusterID, controller.ID(), brokers}, nil
}

var kinds = map[string]sarama.ConfigResourceType{"topic": sarama.TopicResource, "broker": sarama.BrokerResource}

func kindOf(name string) (sarama.ConfigResourceType, error) {
	if kind, known := kinds[name]; known {
		return kind, nil
	}
	return 0, driver.NotOffered("it does not know settings of groups")
}

func (a *admin) describeSettings(kind, name string) (map[string]string, error) {
	known, err := kindOf(kind)
	if err != nil {
		return nil, err
	}
	found, err := a.DescribeConfig(sarama.ConfigResource{Type: known, Name: name})
	told := make(map[string]string)
	for _, each := range found {
		told[each.Name] = each.Value
	}
	return told, err
}

func (a *admin) changeSettings(name string, with driver.Arguments) error {
	kind, err := kindOf(driver.Get[string](with, "kind"))
	if err != nil {
		return err
	}
	entries := make(map[string]sarama.IncrementalAlterConfigsEntry)
	for setting, value := range driver.Get[map[string]string](with, "put") {
		entries[setting] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value,
		}
	}
	for _, setting := range driver.Get[[]string](with, "remove") {
		entries[setting] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationDelete,
		}
	}
	for setting, value := range driver.Get[map[string]string](with, "append") {
		entries[setting] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationAppend, Value: &value,
		}
	}
	return a.IncrementalAlterConfig(kind, name, entries, false)
}

// deleteRecords tells where partitions begin afterwards.
func (a *admin) deleteRecords(before []driver.Pair[int64]) ([]driver.Pair[int64], error) {
	told := []driver.Pair[int64]{}
	for _, each := range before {
		at := each.Of
		if err := a.DeleteRecords(at.Topic, map[int32]int64{at.Number: each.Value}); err != nil {
			return nil, err
		}
		first, err := a.client.GetOffset(at.Topic, at.Number, sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		told = append(told, driver.PairOf(at, first))
	}
	return told, nil
}

func (a *admin) logSizes(topic string) ([][2]int64, error) {
	var ids []int32
	for _, each := range a.client.Brokers() {
		ids = append(ids, each.ID())
	}
	found, err := a.DescribeLogDirs(ids)
	told := [][2]int64{}
	for _, directories := range found {
		for _, directory := range directories {
			for _, each := range directory.Topics {
				if each.Topic != topic {
					continue
				}
				for _, partition := range each.Partitions {
					told = append(told, [2]int64{int64(partition.PartitionID), partition.Size})
				}
			}
		}
	}
	return told, err
}
