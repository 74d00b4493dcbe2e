import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RetriableCommitFailedException;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A consumer, by either protocol of groups or without a group.  Calls come one after the other. */
final class ConsumerCalls implements Subject {
    private static final int POLL_RECORDS_MAX = 5000;
    private static final int SESSION_MS = 6000;
    private static final int HEARTBEAT_MS = 200;
    private static final int FETCH_WAIT_MS = 100;

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final boolean newProtocol;
    private final List<Object> events = new ArrayList<>();
    private final Map<Integer, Optional<Exception>> commits = new ConcurrentHashMap<>();
    private int commitsBegun;

    ConsumerCalls(JsonNode with) {
        newProtocol = with.get("new_protocol").booleanValue();
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", with.get("address").textValue());
        settings.put("auto.offset.reset", with.get("reset").textValue());
        settings.put("enable.auto.commit", with.get("auto_commit").booleanValue());
        settings.put("fetch.max.wait.ms", FETCH_WAIT_MS);
        settings.put("max.poll.records", POLL_RECORDS_MAX);
        boolean committedOnly = with.get("committed_only").booleanValue();
        settings.put("isolation.level", committedOnly ? "read_committed" : "read_uncommitted");
        if (newProtocol) {
            require("group.protocol", "it does not know the consumer groups of KIP-848");
            settings.put("group.protocol", "consumer");
        } else { // what the broker says to members by the new protocol
            boolean cooperative = with.get("cooperative").booleanValue();
            Class<?> assignor = cooperative ? CooperativeStickyAssignor.class : RangeAssignor.class;
            settings.put("partition.assignment.strategy", assignor.getName());
            settings.put("session.timeout.ms", SESSION_MS);
            settings.put("heartbeat.interval.ms", HEARTBEAT_MS);
        }
        putIfGiven(settings, "group.id", with.get("group"));
        if (Values.isGiven(with.get("instance_id"))) {
            require("group.instance.id", "it has no static members");
        }
        putIfGiven(settings, "group.instance.id", with.get("instance_id"));
        putIfGiven(settings, "max.partition.fetch.bytes", with.get("fetch_bytes_max"));
        putIfGiven(settings, "metadata.max.age.ms", with.get("metadata_age_ms"));
        if (Values.isGiven(with.get("may_create_topics"))) {
            require("allow.auto.create.topics", "its requests for metadata always create topics");
        }
        putIfGiven(settings, "allow.auto.create.topics", with.get("may_create_topics"));
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Clients take no notice of a setting that they do not know. */
    private static void require(String setting, String otherwise) {
        if (!ConsumerConfig.configNames().contains(setting)) {
            throw new Failures.NotOffered(otherwise);
        }
    }

    private static void putIfGiven(Map<String, Object> settings, String name, JsonNode value) {
        if (Values.isGiven(value)) {
            settings.put(name, value.asText());
        }
    }

    ConsumerGroupMetadata groupMetadata() {
        return consumer.groupMetadata();
    }

    @Override
    public List<Object> events() {
        synchronized (events) {
            List<Object> told = new ArrayList<>(events);
            events.clear();
            return told;
        }
    }

    private void note(String kind, Collection<TopicPartition> partitions) {
        synchronized (events) {
            events.add(List.of(kind, Values.told(partitions)));
        }
    }

    private final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            note("gained", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            note("lost", partitions);
        }
    }

    @Override
    public Object call(String operation, JsonNode with) throws Exception {
        switch (operation) {
            case "subscribe" -> subscribe(with);
            case "assign" -> consumer.assign(Values.partitions(with.get("partitions")));
            case "seek" ->
                consumer.seek(Values.partition(with.get("partition")), with.get("offset").longValue());
            case "seek_to_beginning" -> consumer.seekToBeginning(Values.partitions(with.get("partitions")));
            case "seek_to_end" -> consumer.seekToEnd(Values.partitions(with.get("partitions")));
            case "pause" -> consumer.pause(Values.partitions(with.get("partitions")));
            case "resume" -> consumer.resume(Values.partitions(with.get("partitions")));
            case "commit" -> commit(with.get("offsets"));
            case "close" -> consumer.close();
            default -> {
                return ask(operation, with);
            }
        }
        return null;
    }

    private Object ask(String operation, JsonNode with) throws Exception {
        return switch (operation) {
            case "poll" -> poll(with.get("wait_ms").longValue(), with.get("records_max").intValue());
            case "position" -> consumer.position(Values.partition(with.get("partition")));
            case "commit_soon" -> commitSoon(with.get("offsets"));
            case "is_confirmed" -> isConfirmed(with.get("commit").intValue());
            case "committed" -> Values.told(
                committed(Values.partitions(with.get("partitions"))),
                each -> each == null ? null : List.of(each.offset(), each.metadata()));
            case "bounds" -> bounds(Values.partitions(with.get("partitions")));
            case "find_times" -> findTimes(with.get("times"));
            case "partitions_of" -> partitionsOf(with.get("topic").textValue());
            default -> throw new IllegalArgumentException(operation);
        };
    }

    private Map<TopicPartition, OffsetAndMetadata> committed(List<TopicPartition> partitions)
            throws ReflectiveOperationException {
        try {
            return consumer.committed(new HashSet<>(partitions));
        } catch (NoSuchMethodError olderThanSeveralAtATime) {
            Method ofOne = consumer.getClass().getMethod("committed", TopicPartition.class);
            Map<TopicPartition, OffsetAndMetadata> found = new LinkedHashMap<>();
            for (TopicPartition each : partitions) {
                found.put(each, (OffsetAndMetadata) ofOne.invoke(consumer, each));
            }
            return found;
        }
    }

    private void subscribe(JsonNode with) {
        Listener listener = new Listener();
        if (!Values.isGiven(with.get("pattern"))) {
            consumer.subscribe(Values.texts(with.get("topics")), listener);
        } else if (newProtocol) {
            consumer.subscribe(new SubscriptionPattern(with.get("pattern").textValue()), listener);
        } else {
            consumer.subscribe(Pattern.compile(with.get("pattern").textValue()), listener);
        }
    }

    /** At most so many records: those beyond are fetched again. */
    private List<Object> poll(long waitMs, int recordsMax) throws ReflectiveOperationException {
        List<Object> taken = new ArrayList<>();
        Map<TopicPartition, Long> left = new LinkedHashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : polled(waitMs)) {
            if (taken.size() < recordsMax) {
                taken.add(Values.told(record));
            } else {
                left.putIfAbsent(new TopicPartition(record.topic(), record.partition()), record.offset());
            }
        }
        left.forEach(consumer::seek);
        return taken;
    }

    @SuppressWarnings("unchecked")
    private ConsumerRecords<byte[], byte[]> polled(long waitMs) throws ReflectiveOperationException {
        try {
            return consumer.poll(Duration.ofMillis(waitMs));
        } catch (NoSuchMethodError olderThanDurations) {
            Method poll = consumer.getClass().getMethod("poll", long.class);
            return (ConsumerRecords<byte[], byte[]>) poll.invoke(consumer, waitMs);
        }
    }

    private void commit(JsonNode offsets) {
        if (Values.isGiven(offsets)) {
            consumer.commitSync(Values.byPartition(offsets, ConsumerCalls::committed));
        } else {
            consumer.commitSync();
        }
    }

    private static OffsetAndMetadata committed(JsonNode pair) {
        return new OffsetAndMetadata(pair.get(0).longValue(), pair.get(1).textValue());
    }

    private int commitSoon(JsonNode offsets) {
        int number = ++commitsBegun;
        commitAsync(number, Values.byPartition(offsets, ConsumerCalls::committed));
        return number;
    }

    /** Commits again as long as the client says that this is the thing to do. */
    private void commitAsync(int number, Map<TopicPartition, OffsetAndMetadata> offsets) {
        consumer.commitAsync(offsets, (committed, error) -> {
            if (error instanceof RetriableCommitFailedException) {
                commitAsync(number, offsets);
            } else {
                commits.put(number, Optional.ofNullable(error));
            }
        });
    }

    private boolean isConfirmed(int number) throws Exception {
        Optional<Exception> answer = commits.get(number);
        if (answer != null && answer.isPresent()) {
            throw answer.get();
        }
        return answer != null;
    }

    private List<Object> bounds(List<TopicPartition> partitions) {
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        Map<TopicPartition, List<Long>> bounds = new LinkedHashMap<>();
        consumer.beginningOffsets(partitions).forEach((each, first) ->
            bounds.put(each, List.of(first, ends.get(each))));
        return Values.told(bounds, pair -> pair);
    }

    private List<Object> findTimes(JsonNode times) {
        Map<TopicPartition, Long> asked = Values.byPartition(times, JsonNode::longValue);
        Map<TopicPartition, OffsetAndTimestamp> found = new HashMap<>(consumer.offsetsForTimes(asked));
        asked.keySet().forEach(each -> found.putIfAbsent(each, null)); // clients before 1.0 leave them out
        return Values.told(found, each -> each == null ? null : each.offset());
    }

    private List<Integer> partitionsOf(String topic) {
        List<PartitionInfo> found = consumer.partitionsFor(topic);
        return found == null ? List.of() : found.stream().map(PartitionInfo::partition).toList();
    }
}
