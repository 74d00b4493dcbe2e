package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	driver "ottla/compat/go_driver"
)

const validation = 3 * time.Second

// An admin carries out administrative calls.
type admin struct {
	client    *kafka.Client
	transport *kafka.Transport
}

func newAdmin(with driver.Arguments) (driver.Subject, error) {
	transport := newTransport()
	return &admin{newClient(with, transport), transport}, nil
}

func (a *admin) Call(operation string, with driver.Arguments) (any, error) {
	name := driver.Get[string](with, "name")
	switch operation {
	case "create_topic":
		return nil, a.createTopic(name, with)
	case "delete_topic":
		ctx, cancel := patiently()
		defer cancel()
		answer, err := a.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{name}})
		if err != nil {
			return nil, err
		}
		return nil, answer.Errors[name]
	case "list_topics":
		found, err := metadata(a.client)
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, each := range found.Topics {
			names = append(names, each.Name)
		}
		return names, nil
	case "describe_topic":
		return a.describeTopic(name)
	case "create_partitions":
		return nil, a.createPartitions(driver.Get[string](with, "topic"), driver.Get[int32](with, "total_count"))
	case "describe_cluster":
		return a.describeCluster()
	case "describe_settings":
		return a.describeSettings(driver.Get[string](with, "kind"), name)
	case "replace_settings":
		return nil, a.replaceSettings(with)
	case "change_settings":
		return nil, a.changeSettings(name, with)
	case "api_versions":
		return a.apiVersions()
	case "close":
		a.transport.CloseIdleConnections()
		return nil, nil
	}
	return a.callOnGroups(operation, with)
}

// missing says that there is no such call.
func missing(operation string) error {
	return driver.NotOffered("its client has no such call: " + strings.ReplaceAll(operation, "_", " "))
}

// metadata of these topics, or of all.
func metadata(client *kafka.Client, topics ...string) (*kafka.MetadataResponse, error) {
	ctx, cancel := patiently()
	defer cancel()
	return client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
}

func partitionsOf(client *kafka.Client, topic string) ([]int, error) {
	found, err := metadata(client, topic)
	if err != nil {
		return nil, err
	}
	told := []int{}
	for _, each := range found.Topics[0].Partitions {
		told = append(told, each.ID)
	}
	if err = found.Topics[0].Error; errors.Is(err, kafka.UnknownTopicOrPartition) {
		err = nil
	}
	return told, err
}

func (a *admin) createTopic(name string, with driver.Arguments) error {
	topic := kafka.TopicConfig{
		Topic:             name,
		NumPartitions:     driver.Get[int](with, "partition_count"),
		ReplicationFactor: driver.Get[int](with, "replication_factor"),
	}
	for setting, value := range driver.Get[map[string]string](with, "settings") {
		topic.ConfigEntries = append(topic.ConfigEntries, kafka.ConfigEntry{ConfigName: setting, ConfigValue: value})
	}
	ctx, cancel := patiently()
	defer cancel()
	validateOnly := driver.Get[bool](with, "validate_only")
	if validateOnly {
		// When it has the answer, kafka-go waits until it sees the topic, or until its time is over.
		ctx, cancel = context.WithTimeout(ctx, validation)
		defer cancel()
	}
	answer, err := a.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{topic}, ValidateOnly: validateOnly,
	})
	if err != nil {
		return err
	}
	return answer.Errors[name]
}

func (a *admin) createPartitions(topic string, count int32) error {
	ctx, cancel := patiently()
	defer cancel()
	answer, err := a.client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: count}},
	})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (a *admin) describeTopic(name string) ([]driver.PartitionDescription, error) {
	found, err := metadata(a.client, name)
	if err != nil {
		return nil, err
	}
	topic := found.Topics[0]
	if topic.Error != nil {
		return nil, topic.Error
	}
	told := make([]driver.PartitionDescription, len(topic.Partitions))
	for _, each := range topic.Partitions {
		told[each.ID] = driver.PartitionDescription{each.ID, each.Leader.ID, ids(each.Replicas), ids(each.Isr)}
	}
	return told, nil
}

func ids(brokers []kafka.Broker) []int {
	told := []int{}
	for _, each := range brokers {
		told = append(told, each.ID)
	}
	return told
}

func (a *admin) describeCluster() (any, error) {
	found, err := metadata(a.client)
	if err != nil {
		return nil, err
	}
	brokers := []any{}
	for _, each := range found.Brokers {
		brokers = append(brokers, []any{each.ID, fmt.Sprintf("%s:%d", each.Host, each.Port)})
	}
	return []any{found.ClusterID, found.Controller.ID, brokers}, nil
}

func (a *admin) apiVersions() (any, error) {
	ctx, cancel := patiently()
	defer cancel()
	found, err := a.client.ApiVersions(ctx, &kafka.ApiVersionsRequest{})
	if err != nil {
		return nil, err
	}
	told := [][]int{}
	for _, each := range found.ApiKeys {
		told = append(told, []int{each.ApiKey, each.MinVersion, each.MaxVersion})
	}
	return told, found.Error
}
