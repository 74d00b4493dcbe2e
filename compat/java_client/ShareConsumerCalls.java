import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a share group.  Calls come one after the other. */
final class ShareConsumerCalls implements Subject {
    private static final int FETCH_WAIT_MS = 100;

    private final KafkaShareConsumer<byte[], byte[]> consumer;

    ShareConsumerCalls(JsonNode with) {
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
                List<Object> taken = new ArrayList<>();
                consumer.poll(Duration.ofMillis(with.get("wait_ms").longValue()))
                    .forEach(record -> taken.add(Values.told(record)));
                return taken;
            }
            case "subscribe" -> consumer.subscribe(Values.texts(with.get("topics")));
            case "acknowledge" -> acknowledge(with);
            case "commit" -> commit();
            case "close" -> consumer.close();
            default -> throw new IllegalArgumentException(operation);
        }
        return null;
    }

    private void acknowledge(JsonNode with) {
        TopicPartition partition = Values.partition(with.get("partition"));
        AcknowledgeType how = AcknowledgeType.valueOf(with.get("how").textValue().toUpperCase(Locale.ROOT));
        consumer.acknowledge(partition.topic(), partition.partition(), with.get("offset").longValue(), how);
    }

    private void commit() {
        for (Optional<KafkaException> result : consumer.commitSync().values()) {
            if (result.isPresent()) {
                throw result.get();
            }
        }
    }
}
