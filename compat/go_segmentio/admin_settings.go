package main

import (
	"github.com/segmentio/kafka-go"

	driver "ottla/compat/go_driver"
)

var kinds = map[string]kafka.ResourceType{
	"topic":  kafka.ResourceTypeTopic,
	"broker": kafka.ResourceTypeBroker,
}

func kindOf(name string) (kafka.ResourceType, error) {
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
	ctx, cancel := patiently()
	defer cancel()
	answer, err := a.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: known, ResourceName: name}},
	})
	if err != nil {
		return nil, err
	}
	told := make(map[string]string)
	for _, each := range answer.Resources[0].ConfigEntries {
		told[each.ConfigName] = each.ConfigValue
	}
	return told, answer.Resources[0].Error
}

func (a *admin) replaceSettings(with driver.Arguments) error {
	topic := kafka.AlterConfigRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: driver.Get[string](with, "topic"),
	}
	for setting, value := range driver.Get[map[string]string](with, "settings") {
		topic.Configs = append(topic.Configs, kafka.AlterConfigRequestConfig{Name: setting, Value: value})
	}
	ctx, cancel := patiently()
	defer cancel()
	answer, err := a.client.AlterConfigs(ctx, &kafka.AlterConfigsRequest{
		Resources: []kafka.AlterConfigRequestResource{topic},
	})
	if err != nil {
		return err
	}
	for _, err = range answer.Errors {
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *admin) changeSettings(name string, with driver.Arguments) error {
	kind, err := kindOf(driver.Get[string](with, "kind"))
	if err != nil {
		return err
	}
	resource := kafka.IncrementalAlterConfigsRequestResource{ResourceType: kind, ResourceName: name}
	add := func(setting, value string, operation kafka.ConfigOperation) {
		resource.Configs = append(resource.Configs, kafka.IncrementalAlterConfigsRequestConfig{
			Name: setting, Value: value, ConfigOperation: operation,
		})
	}
	for setting, value := range driver.Get[map[string]string](with, "put") {
		add(setting, value, kafka.ConfigOperationSet)
	}
	for _, setting := range driver.Get[[]string](with, "remove") {
		add(setting, "", kafka.ConfigOperationDelete)
	}
	for setting, value := range driver.Get[map[string]string](with, "append") {
		add(setting, value, kafka.ConfigOperationAppend)
	}
	ctx, cancel := patiently()
	defer cancel()
	answer, err := a.client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{resource},
	})
	if err != nil {
		return err
	}
	return answer.Resources[0].Error
}
