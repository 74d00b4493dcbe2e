import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Answers each line, a share group in JSON, with what Kafka's own assignor gives its members. */
public class ShareJudge {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        var questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine())
            System.out.println(JSON.writeValueAsString(assign(JSON.readTree(line))));
    }

    private static ObjectNode assign(JsonNode question) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        question.get("members").properties().forEach(entry -> {
            Set<Uuid> topics = new LinkedHashSet<>();
            entry.getValue().get("topics").forEach(topic -> topics.add(Uuid.fromString(topic.asText())));
            subscriptions.add(topics);
            members.put(entry.getKey(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), topics,
                new Assignment(partitions(entry.getValue().get("target")))));
        });
        Map<Uuid, Set<Integer>> initialized = partitions(question.get("partitions"));
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return question.get("count").asInt();
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        var type = subscriptions.size() == 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        var assigned = new SimpleAssignor().assign(
            new GroupSpecImpl(members, type, Map.of(), Optional.of(initialized)), describer);
        ObjectNode answer = JSON.createObjectNode();
        members.keySet().forEach(answer::putObject);
        assigned.members().forEach((id, member) -> {
            ObjectNode topics = answer.putObject(id);
            member.partitions().forEach((topic, of) -> new TreeSet<>(of).forEach(
                topics.putArray(topic.toString())::add));
        });
        return answer;
    }

    /** As Kafka reads them from a record. */
    private static Map<Uuid, Set<Integer>> partitions(JsonNode told) {
        Map<Uuid, Set<Integer>> partitions = new HashMap<>();
        told.properties().forEach(entry -> {
            List<Integer> of = new ArrayList<>();
            entry.getValue().forEach(partition -> of.add(partition.asInt()));
            partitions.put(Uuid.fromString(entry.getKey()), new HashSet<>(of));
        });
        return partitions;
    }
}
