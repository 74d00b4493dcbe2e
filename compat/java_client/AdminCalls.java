import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsResult;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** Administrative calls about topics, brokers and records; others are elsewhere. */
// By the class and not the interface that it implements, which clients before 2.4 do not have.
final class AdminCalls implements Subject {
    private final AdminClient admin;
    private final GroupAdminCalls groups;
    private final TransactionAdminCalls transactions;

    AdminCalls(JsonNode with) {
        admin = AdminClient.create(Map.of("bootstrap.servers", with.get("address").textValue()));
        groups = new GroupAdminCalls(admin);
        transactions = new TransactionAdminCalls(admin);
    }

    @Override
    public Object call(String operation, JsonNode with) throws Exception {
        switch (operation) {
            case "create_topic" -> createTopic(with);
            case "delete_topic" -> admin.deleteTopics(List.of(with.get("name").textValue())).all().get();
            case "create_partitions" -> admin.createPartitions(
                Map.of(
                    with.get("topic").textValue(),
                    NewPartitions.increaseTo(with.get("total_count").intValue()))).all().get();
            case "replace_settings" -> replaceSettings(with);
            case "change_settings" -> changeSettings(with);
            case "close" -> admin.close();
            default -> {
                return ask(operation, with);
            }
        }
        return null;
    }

    private Object ask(String operation, JsonNode with) throws Exception {
        return switch (operation) {
            case "list_topics" -> admin.listTopics().names().get();
            case "describe_topic" -> describeTopic(with.get("name").textValue());
            case "describe_cluster" -> describeCluster();
            case "describe_settings" -> describeSettings(resource(with));
            case "list_config_resources" -> admin.listConfigResources().all().get().stream()
                .map(each -> List.of(kind(each.type()), each.name())).toList();
            case "delete_records" -> deleteRecords(with.get("before"));
            case "find_offsets" -> findOffsets(Values.partition(with.get("partition")));
            case "log_sizes" -> logSizes(with.get("topic").textValue());
            case "describe_producers" -> describeProducers(Values.partition(with.get("partition")));
            case "describe_topic_by_pages" ->
                throw new Failures.NotOffered("it follows the pages of DescribeTopicPartitions by itself");
            case "api_versions" -> throw new Failures.NotOffered("it does not tell the broker's API versions");
            default -> operation.contains("transaction") || operation.contains("fence")
                ? transactions.call(operation, with)
                : groups.call(operation, with);
        };
    }

    private void createTopic(JsonNode with) throws Exception {
        NewTopic topic = new NewTopic(
            with.get("name").textValue(),
            with.get("partition_count").intValue(),
            with.get("replication_factor").shortValue());
        topic.configs(Values.settings(with.get("settings")));
        boolean validateOnly = with.get("validate_only").booleanValue();
        admin.createTopics(List.of(topic), new CreateTopicsOptions().validateOnly(validateOnly)).all().get();
    }

    private List<Object> describeTopic(String name) throws Exception {
        List<Object> told = new ArrayList<>();
        TopicDescription topic = described(admin.describeTopics(List.of(name))).get().get(name);
        for (TopicPartitionInfo each : topic.partitions()) {
            told.add(List.of(each.partition(), each.leader().id(), ids(each.replicas()), ids(each.isr())));
        }
        return told;
    }

    @SuppressWarnings("unchecked")
    private static KafkaFuture<Map<String, TopicDescription>> described(DescribeTopicsResult found)
            throws ReflectiveOperationException {
        try {
            return found.allTopicNames();
        } catch (NoSuchMethodError olderThanTopicIds) {
            return (KafkaFuture<Map<String, TopicDescription>>) found.getClass().getMethod("all").invoke(found);
        }
    }

    private static List<Integer> ids(Collection<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    private List<Object> describeCluster() throws Exception {
        DescribeClusterResult found = admin.describeCluster();
        List<Object> brokers = new ArrayList<>();
        for (Node node : found.nodes().get()) {
            brokers.add(List.of(node.id(), node.host() + ":" + node.port()));
        }
        return List.of(found.clusterId().get(), found.controller().get().id(), brokers);
    }

    private static ConfigResource resource(JsonNode with) {
        ConfigResource.Type type = switch (with.get("kind").textValue()) {
            case "topic" -> ConfigResource.Type.TOPIC;
            case "broker" -> ConfigResource.Type.BROKER;
            case "group" -> groups();
            default -> throw new IllegalArgumentException(with.toString());
        };
        return new ConfigResource(type, with.get("name").textValue());
    }

    private static ConfigResource.Type groups() {
        try {
            return ConfigResource.Type.GROUP;
        } catch (NoSuchFieldError older) {
            throw new Failures.NotOffered("it does not know settings of groups");
        }
    }

    private static String kind(ConfigResource.Type type) {
        return type.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    private Map<String, String> describeSettings(ConfigResource resource) throws Exception {
        Map<String, String> told = new LinkedHashMap<>();
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            told.put(entry.name(), entry.value());
        }
        return told;
    }

    /** With AlterConfigs, which is gone since 4.0. */
    private void replaceSettings(JsonNode with) throws Exception {
        List<ConfigEntry> entries = new ArrayList<>();
        Values.settings(with.get("settings")).forEach((name, value) ->
            entries.add(new ConfigEntry(name, value)));
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, with.get("topic").textValue());
        Method alter;
        try {
            alter = AdminClient.class.getMethod("alterConfigs", Map.class);
        } catch (NoSuchMethodException newer) {
            throw new Failures.NotOffered("it does not know AlterConfigs any more");
        }
        ((AlterConfigsResult) alter.invoke(admin, Map.of(topic, new Config(entries)))).all().get();
    }

    private void changeSettings(JsonNode with) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        Values.settings(with.get("put")).forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        Values.texts(with.get("remove")).forEach(name ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, null), AlterConfigOp.OpType.DELETE)));
        Values.settings(with.get("append")).forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.APPEND)));
        admin.incrementalAlterConfigs(Map.of(resource(with), changes)).all().get();
    }

    private List<Object> deleteRecords(JsonNode before) throws Exception {
        Map<TopicPartition, RecordsToDelete> asked =
            Values.byPartition(before, offset -> RecordsToDelete.beforeOffset(offset.longValue()));
        List<Object> told = new ArrayList<>();
        for (var each : admin.deleteRecords(asked).lowWatermarks().entrySet()) {
            told.add(List.of(Values.told(each.getKey()), each.getValue().get().lowWatermark()));
        }
        return told;
    }

    private Map<String, Object> findOffsets(TopicPartition partition) throws Exception {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("earliest", find(partition, OffsetSpec.earliest()));
        told.put("latest", find(partition, OffsetSpec.latest()));
        told.put("max-timestamp", find(partition, OffsetSpec.maxTimestamp()));
        told.put("earliest-local", find(partition, OffsetSpec.earliestLocal()));
        told.put("latest-tiered", find(partition, OffsetSpec.latestTiered()));
        return told;
    }

    private List<Object> find(TopicPartition partition, OffsetSpec spec) throws Exception {
        ListOffsetsResultInfo found =
            admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
        return List.of(found.offset(), found.timestamp());
    }

    private List<Object> logSizes(String topic) throws Exception {
        List<Object> told = new ArrayList<>();
        List<Integer> brokers = ids(admin.describeCluster().nodes().get());
        for (Map<String, LogDirDescription> folders :
                admin.describeLogDirs(brokers).allDescriptions().get().values()) {
            for (LogDirDescription folder : folders.values()) {
                folder.replicaInfos().forEach((partition, replica) -> {
                    if (partition.topic().equals(topic)) {
                        told.add(List.of(partition.partition(), replica.size()));
                    }
                });
            }
        }
        return told;
    }

    private List<Object> describeProducers(TopicPartition partition) throws Exception {
        List<Object> told = new ArrayList<>();
        var found = admin.describeProducers(List.of(partition)).partitionResult(partition).get();
        for (ProducerState each : found.activeProducers()) {
            told.add(List.of(each.producerId(), each.producerEpoch(), each.lastSequence()));
        }
        return told;
    }
}
