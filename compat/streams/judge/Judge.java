import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseDataJsonConverter;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestDataJsonConverter;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.streams.CurrentAssignmentBuilder;
import org.apache.kafka.coordinator.group.streams.MemberState;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.coordinator.group.streams.TopologyMetadata;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredInternalTopic;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredSubtopology;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.slf4j.helpers.NOPLogger;

/** Answers each line, a question in JSON, with what Kafka's own classes for streams groups make of it. */
public class Judge {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        var questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = question.has("topology") ? configure(question)
                : question.has("target") ? reconcile(question) : assign(question);
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static ObjectNode assign(JsonNode question) {
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            members.put(member.get("id").asText(), new MemberMetadataAndStateImpl(
                Optional.empty(), Optional.empty(), member.get("process").asText(), Map.of(),
                tasks(member.get("active")), tasks(member.get("standby")), Map.of(),
                offsets(member.get("offsets")), Map.of()));
        }
        SortedMap<String, ConfiguredSubtopology> subtopologies = new TreeMap<>();
        question.get("subtopologies").properties().forEach(entry -> {
            Map<String, ConfiguredInternalTopic> changelogs = entry.getValue().get(1).asBoolean()
                ? Map.of("log", new ConfiguredInternalTopic("log", 1, Optional.empty(), Map.of())) : Map.of();
            subtopologies.put(entry.getKey(), new ConfiguredSubtopology(
                entry.getValue().get(0).asInt(), Set.of("in"), Map.of(), Set.of(), changelogs));
        });
        var configs = new AssignmentConfigsImpl(question.get("replicas").asInt(), List.of());
        GroupAssignment assigned = new StickyTaskAssignor().assign(
            new GroupSpecImpl(members, configs), new TopologyMetadata(CoordinatorMetadataImage.EMPTY, subtopologies));
        ObjectNode answer = JSON.createObjectNode();
        assigned.members().forEach((id, member) -> {
            ArrayNode both = answer.putArray(id);
            both.add(tasks(member.activeTasks()));
            both.add(tasks(member.standbyTasks()));
        });
        return answer;
    }

    private static ObjectNode reconcile(JsonNode question) {
        JsonNode held = question.get("held");
        Map<String, Set<String>> active = holders(held.get(0));
        Map<String, Set<String>> standby = holders(held.get(1));
        Map<String, Set<String>> warmup = holders(held.get(2));
        StreamsGroupMember member = StreamsGroupMember.Builder.withDefaults("member")
            .setProcessId(question.get("process").asText())
            .setState(MemberState.fromValue((byte) question.get("state").asInt()))
            .setMemberEpoch(question.get("epoch").asInt())
            .setPreviousMemberEpoch(question.get("previous").asInt())
            .setAssignedTasks(tasksWithEpochs(question.get("assigned")))
            .setTasksPendingRevocation(tasksWithEpochs(question.get("revoking")))
            .build();
        ObjectNode answer = JSON.createObjectNode();
        try {
            StreamsGroupMember moved = new CurrentAssignmentBuilder(member)
                .withTargetAssignment(question.get("target_epoch").asInt(), tasksTuple(question.get("target")))
                .withCurrentActiveTaskProcessId((subtopology, partition) ->
                    active.getOrDefault(subtopology + "/" + partition, Set.of()).stream().findAny().orElse(null))
                .withCurrentStandbyTaskProcessIds((subtopology, partition) ->
                    standby.getOrDefault(subtopology + "/" + partition, Set.of()))
                .withCurrentWarmupTaskProcessIds((subtopology, partition) ->
                    warmup.getOrDefault(subtopology + "/" + partition, Set.of()))
                .withOwnedAssignment(question.get("claimed").isNull() ? null : tasksTuple(question.get("claimed")))
                .build();
            answer.put("epoch", moved.memberEpoch()).put("previous", moved.previousMemberEpoch());
            answer.put("state", (int) moved.state().value());
            answer.set("assigned", tasksWithEpochs(moved.assignedTasks()));
            answer.set("revoking", tasksWithEpochs(moved.tasksPendingRevocation()));
        } catch (RuntimeException wrong) {
            answer.putArray("error").add((int) Errors.forException(wrong).code()).add(wrong.getMessage());
        }
        return answer;
    }

    /** Processes by task. */
    private static Map<String, Set<String>> holders(JsonNode told) {
        Map<String, Set<String>> holders = new HashMap<>();
        told.forEach(holder -> holders
            .computeIfAbsent(holder.get(0).asText() + "/" + holder.get(1).asInt(), key -> new HashSet<>())
            .add(holder.get(2).asText()));
        return holders;
    }

    private static TasksTuple tasksTuple(JsonNode told) {
        return new TasksTuple(tasks(told.get(0)), tasks(told.get(1)), tasks(told.get(2)));
    }

    private static TasksTupleWithEpochs tasksWithEpochs(JsonNode told) {
        Map<String, Map<Integer, Integer>> active = new HashMap<>();
        told.get(0).properties().forEach(entry -> entry.getValue().forEach(pair ->
            active.computeIfAbsent(entry.getKey(), key -> new HashMap<>())
                .put(pair.get(0).asInt(), pair.get(1).asInt())));
        return new TasksTupleWithEpochs(active, tasks(told.get(1)), tasks(told.get(2)));
    }

    private static ArrayNode tasksWithEpochs(TasksTupleWithEpochs tasks) {
        ObjectNode active = JSON.createObjectNode();
        new TreeMap<>(tasks.activeTasksWithEpochs()).forEach((subtopology, epochs) -> {
            ArrayNode list = active.putArray(subtopology);
            new TreeMap<>(epochs).forEach((partition, epoch) -> list.addArray().add(partition).add(epoch));
        });
        return JSON.createArrayNode().add(active).add(tasks(tasks.standbyTasks())).add(tasks(tasks.warmupTasks()));
    }

    private static Map<String, Set<Integer>> tasks(JsonNode told) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        told.properties().forEach(entry -> {
            Set<Integer> partitions = tasks.computeIfAbsent(entry.getKey(), key -> new HashSet<>());
            entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
        });
        return tasks;
    }

    private static ObjectNode tasks(Map<String, Set<Integer>> tasks) {
        ObjectNode told = JSON.createObjectNode();
        new TreeMap<>(tasks).forEach((subtopology, partitions) -> {
            ArrayNode list = told.putArray(subtopology);
            new TreeSet<>(partitions).forEach(list::add);
        });
        return told;
    }

    private static Map<String, Map<Integer, Long>> offsets(JsonNode told) {
        Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        told.properties().forEach(entry -> entry.getValue().forEach(pair ->
            offsets.computeIfAbsent(entry.getKey(), key -> new HashMap<>())
                .put(pair.get(0).asInt(), pair.get(1).asLong())));
        return offsets;
    }

    private static ObjectNode configure(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        Topics topics = new Topics(question.get("topics"));
        try {
            StreamsGroupHeartbeatRequestData request =
                StreamsGroupHeartbeatRequestDataJsonConverter.read(question.get("topology"), (short) 1);
            StreamsTopology topology = StreamsTopology.fromHeartbeatRequest(request.topology());
            ConfiguredTopology configured = InternalTopicManager.configureTopics(
                NOPLogger.NOP_LOGGER, "group", "member", 7, topology, topics, Time.SYSTEM);
            ArrayNode required = answer.putArray("required");
            new TreeSet<>(topology.requiredTopics()).forEach(required::add);
            configured.topicConfigurationException().ifPresent(problem -> answer.putArray("problem")
                .add((int) problem.status().code()).add(problem.getMessage()));
            ArrayNode missing = answer.putArray("missing");
            configured.internalTopicsToBeCreated().forEach((name, topic) -> {
                ArrayNode wanted = missing.addArray().add(name);
                wanted.add(topic.numPartitions()).add((int) topic.replicationFactor());
                Map<String, String> configs = new TreeMap<>();
                topic.configs().forEach(config -> configs.put(config.name(), config.value()));
                wanted.add(JSON.valueToTree(configs));
            });
            configured.subtopologies().ifPresent(subtopologies -> {
                ArrayNode list = answer.putArray("subtopologies");
                subtopologies.forEach((id, of) -> list.add(JSON.createArrayNode()
                    .add(id).add(of.numberOfTasks()).add(!of.stateChangelogTopics().isEmpty())));
            });
            answer.set("configured", described(configured.asStreamsGroupDescribeTopology()));
            answer.set("stored", described(topology.asStreamsGroupDescribeTopology()));
        } catch (RuntimeException wrong) {
            Errors error = Errors.forException(wrong);
            answer.removeAll();
            answer.putArray("error").add((int) error.code())
                .add(error == Errors.UNKNOWN_SERVER_ERROR ? null : wrong.getMessage());
        }
        return answer;
    }

    private static JsonNode described(StreamsGroupDescribeResponseData.Topology topology) {
        var response = new StreamsGroupDescribeResponseData();
        response.groups().add(new StreamsGroupDescribeResponseData.DescribedGroup().setTopology(topology));
        return StreamsGroupDescribeResponseDataJsonConverter.write(response, (short) 1)
            .get("groups").get(0).get("topology");
    }

    /** Topics of which only the number of partitions is known. */
    private static class Topics implements CoordinatorMetadataImage {
        private final Map<String, Integer> counts = new HashMap<>();

        Topics(JsonNode told) {
            told.properties().forEach(entry -> counts.put(entry.getKey(), entry.getValue().asInt()));
        }

        @Override
        public Set<Uuid> topicIds() {
            return Set.of();
        }

        @Override
        public Set<String> topicNames() {
            return counts.keySet();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(counts.get(name)).map(count -> new TopicMetadata() {
                @Override
                public String name() {
                    return name;
                }

                @Override
                public Uuid id() {
                    return Uuid.ZERO_UUID;
                }

                @Override
                public int partitionCount() {
                    return count;
                }

                @Override
                public List<String> partitionRacks(int partition) {
                    return new ArrayList<>();
                }
            });
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.empty();
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override
        public long version() {
            return 0;
        }

        @Override
        public boolean isEmpty() {
            return counts.isEmpty();
        }
    }
}
