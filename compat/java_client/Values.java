import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/** Between JSON and the client's types. */
final class Values {
    private Values() {}

    static boolean isGiven(JsonNode node) {
        return node != null && !node.isNull();
    }

    static String text(JsonNode node) {
        return node.textValue();
    }

    static byte[] bytes(JsonNode node) {
        try {
            return node.binaryValue();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(each -> texts.add(each.textValue()));
        return texts;
    }

    static Map<String, String> settings(JsonNode table) {
        Map<String, String> settings = new LinkedHashMap<>();
        table.properties().forEach(each -> settings.put(each.getKey(), each.getValue().textValue()));
        return settings;
    }

    static TopicPartition partition(JsonNode pair) {
        return new TopicPartition(pair.get(0).textValue(), pair.get(1).intValue());
    }

    static List<TopicPartition> partitions(JsonNode list) {
        List<TopicPartition> partitions = new ArrayList<>();
        list.forEach(each -> partitions.add(partition(each)));
        return partitions;
    }

    /** A list of pairs of a partition and something. */
    static <V> Map<TopicPartition, V> byPartition(JsonNode pairs, Function<JsonNode, V> read) {
        Map<TopicPartition, V> table = new LinkedHashMap<>();
        pairs.forEach(pair -> table.put(partition(pair.get(0)), read.apply(pair.get(1))));
        return table;
    }

    static List<Object> told(TopicPartition partition) {
        return List.of(partition.topic(), partition.partition());
    }

    static List<Object> told(Collection<TopicPartition> partitions) {
        List<Object> told = new ArrayList<>();
        partitions.forEach(each -> told.add(told(each)));
        return told;
    }

    /** Like {@code List.of}, but null may be among them. */
    static List<Object> pair(Object first, Object second) {
        List<Object> pair = new ArrayList<>();
        pair.add(first);
        pair.add(second);
        return pair;
    }

    static <V> List<Object> told(Map<TopicPartition, V> table, Function<V, Object> tell) {
        List<Object> told = new ArrayList<>();
        table.forEach((partition, value) -> told.add(pair(told(partition), tell.apply(value))));
        return told;
    }

    static Map<String, Object> told(ConsumerRecord<byte[], byte[]> record) {
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(pair(header.key(), header.value()));
        }
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("topic", record.topic());
        told.put("partition", record.partition());
        told.put("offset", record.offset());
        told.put("key", record.key());
        told.put("value", record.value());
        told.put("headers", headers);
        told.put("timestamp_ms", record.timestamp());
        return told;
    }
}
