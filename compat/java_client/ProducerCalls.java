import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.function.IntFunction;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A producer, transactional or not. */
final class ProducerCalls implements Subject {
    private static final Map<String, String> ACKS = Map.of("none", "0", "leader", "1", "all", "all");

    private final KafkaProducer<byte[], byte[]> producer;
    private final IntFunction<ConsumerCalls> consumers;

    private ProducerCalls(Map<String, Object> settings, IntFunction<ConsumerCalls> consumers) {
        this.producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        this.consumers = consumers;
    }

    static ProducerCalls plain(JsonNode with) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", with.get("address").textValue());
        settings.put("acks", ACKS.get(with.get("acks").textValue()));
        settings.put("compression.type", with.get("codec").textValue());
        settings.put("enable.idempotence", with.get("idempotent").booleanValue());
        settings.put("linger.ms", with.get("linger_ms").intValue());
        settings.put("max.block.ms", 30_000);
        if (Values.isGiven(with.get("batch_bytes_max"))) {
            settings.put("batch.size", with.get("batch_bytes_max").intValue());
        }
        if (Values.isGiven(with.get("request_bytes_max"))) {
            settings.put("max.request.size", with.get("request_bytes_max").intValue());
        }
        try {
            return new ProducerCalls(settings, null);
        } catch (KafkaException error) {
            if (error.getCause() instanceof IllegalArgumentException unknown
                    && unknown.getMessage().startsWith("Unknown compression name")) {
                throw new Failures.NotOffered("it does not know " + settings.get("compression.type"));
            }
            throw error;
        }
    }

    /** {@code consumers} finds the consumer of a number. */
    static ProducerCalls transactional(JsonNode with, IntFunction<ConsumerCalls> consumers) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", with.get("address").textValue());
        settings.put("transactional.id", with.get("transactional_id").textValue());
        settings.put("transaction.timeout.ms", with.get("timeout_ms").intValue());
        settings.put("max.block.ms", 30_000);
        ProducerCalls calls = new ProducerCalls(settings, consumers);
        calls.producer.initTransactions();
        return calls;
    }

    @Override
    public Object call(String operation, JsonNode with) throws Exception {
        switch (operation) {
            case "send" -> {
                return send(with.get("topic").textValue(), with.get("records"));
            }
            case "begin" -> producer.beginTransaction();
            case "send_offsets" -> sendOffsets(
                Values.byPartition(with.get("offsets"), offset -> new OffsetAndMetadata(offset.longValue())),
                with.get("group").textValue(),
                consumers.apply(with.get("consumer").intValue()));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "close" -> producer.close();
            default -> throw new IllegalArgumentException(operation);
        }
        return null;
    }

    private void sendOffsets(
            Map<TopicPartition, OffsetAndMetadata> offsets, String group, ConsumerCalls consumer)
            throws ReflectiveOperationException {
        try {
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        } catch (NoSuchMethodError olderThanFencingByGroups) {
            producer.getClass().getMethod("sendOffsetsToTransaction", Map.class, String.class)
                .invoke(producer, offsets, group);
        }
    }

    private List<Object> send(String topic, JsonNode records) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : records) {
            sent.add(producer.send(read(topic, record)));
        }
        producer.flush();
        List<Object> places = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            RecordMetadata place = each.get();
            places.add(List.of(place.partition(), place.offset()));
        }
        return places;
    }

    private static ProducerRecord<byte[], byte[]> read(String topic, JsonNode fields) {
        JsonNode partition = fields.get("partition");
        JsonNode timestamp = fields.get("timestamp_ms");
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
            topic,
            Values.isGiven(partition) ? partition.intValue() : null,
            Values.isGiven(timestamp) ? timestamp.longValue() : null,
            Values.bytes(fields.get("key")),
            Values.bytes(fields.get("value")));
        fields.get("headers").forEach(pair ->
            record.headers().add(pair.get(0).textValue(), Values.bytes(pair.get(1))));
        return record;
    }
}
