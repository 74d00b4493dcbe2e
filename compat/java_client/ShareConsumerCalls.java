import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a share group.  Calls come one after the other. */
final class ShareConsumerCalls implements Subject {
    private static final int FETCH_WAIT_MS = 100;
    private static final Duration RENEWAL_WAIT = Duration.ofSeconds(1);

    private final KafkaShareConsumer<byte[], byte[]> consumer;
    private ConsumerRecords<byte[], byte[]> polled = ConsumerRecords.empty();

    ShareConsumerCalls(JsonNode with) {
        if (!ConsumerConfig.configNames().contains("share.acknowledgement.mode")) {
            throw new Failures.NotOffered("it has no share consumer, or one before the first version");
        }
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", with.get("address").textValue());
        settings.put("group.id", with.get("group").textValue());
        boolean explicit = with.get("explicit").booleanValue();
        settings.put("share.acknowledgement.mode", explicit ? "explicit" : "implicit");
        settings.put("fetch.max.wait.ms", FETCH_WAIT_MS);
        if (Values.isGiven(with.get("records_max"))) {
            settings.put("max.poll.records", with.get("records_max").intValue());
            settings.put("share.acquire.mode", "record_limit");
        }
        consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override
    public Object call(String operation, JsonNode with) throws Exception {
        switch (operation) {
            case "poll" -> {
                return poll(with.get("wait_ms").longValue());
            }
            case "subscribe" -> consumer.subscribe(Values.texts(with.get("topics")));
            case "acknowledge" -> acknowledge(with);
            case "renew" -> renew(with.get("records"));
            case "commit" -> commit();
            case "close" -> consumer.close();
            default -> throw new IllegalArgumentException(operation);
        }
        return null;
    }

    private List<Object> poll(long waitMs) {
        polled = consumer.poll(Duration.ofMillis(waitMs));
        List<Object> taken = new ArrayList<>();
        polled.forEach(record -> {
            Map<String, Object> told = Values.told(record);
            told.put("delivery_count", record.deliveryCount().orElseThrow());
            taken.add(told);
        });
        return taken;
    }

    private void acknowledge(JsonNode with) {
        AcknowledgeType how = AcknowledgeType.valueOf(with.get("how").textValue().toUpperCase(Locale.ROOT));
        acknowledge(Values.partition(with.get("partition")), with.get("offset").longValue(), how);
    }

    private void acknowledge(TopicPartition partition, long offset, AcknowledgeType how) {
        for (var record : polled.records(partition)) {
            if (record.offset() == offset) {
                consumer.acknowledge(record, how);
            }
        }
    }

    /** Renewed records come again with the next poll, and only then can be acknowledged. */
    private void renew(JsonNode records) {
        for (JsonNode pair : records) {
            acknowledge(Values.partition(pair.get(0)), pair.get(1).longValue(), AcknowledgeType.RENEW);
        }
        commit();
        do {
            polled = consumer.poll(RENEWAL_WAIT);
        } while (polled.isEmpty());
    }

    private void commit() {
        for (Optional<KafkaException> result : consumer.commitSync().values()) {
            if (result.isPresent()) {
                throw result.get();
            }
        }
    }
}
