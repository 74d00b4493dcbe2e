import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.kafka.clients.consumer.ConsumerRecord;

/** What the beans of an application are told, and what its listeners tell: in the order in which they heard it. */
final class Told {
    final String address;
    final Map<String, Object> consumer;
    final Map<String, Object> producer;

    private final List<Map<String, Object>> heard = Collections.synchronizedList(new ArrayList<>());
    private final Set<String> failed = ConcurrentHashMap.newKeySet();

    Told(String address, Map<String, Object> consumer, Map<String, Object> producer) {
        this.address = address;
        this.consumer = consumer;
        this.producer = producer;
    }

    void hear(String by, ConsumerRecord<String, String> record) {
        hear(by, record, 1);
    }

    /** {@code together}: how many records the listener was given at once. */
    void hear(String by, ConsumerRecord<String, String> record, int together) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("by", by);
        told.put("topic", record.topic());
        told.put("partition", record.partition());
        told.put("offset", record.offset());
        told.put("value", record.value());
        told.put("together", together);
        heard.add(told);
    }

    List<Map<String, Object>> heard() {
        synchronized (heard) {
            return List.copyOf(heard);
        }
    }

    /** Fails at each value that begins with this word. */
    static void failAt(String word, String value) {
        if (value.startsWith(word)) {
            throw new IllegalStateException("as it is meant to, at " + value);
        }
    }

    /** Whether a value that begins with this word comes for the first time. */
    boolean isFirst(String word, String value) {
        return value.startsWith(word) && failed.add(value);
    }
}
