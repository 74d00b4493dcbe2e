import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Commits, aborts and fences with the Java client, and prints what is committed. */
public class Transactions {
    public static void main(String[] arguments) {
        String address = arguments[0];
        String topic = arguments[1];
        TopicPartition place = new TopicPartition(topic, 0);
        Map<String, Object> reading = Map.of(
            "bootstrap.servers", address, "group.id", topic, "isolation.level", "read_committed",
            "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        try (var reader = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
                var producer = producer(address, topic)) {
            for (int number = 0; number < 6; number++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, 0, null, "value" + number));
                producer.sendOffsetsToTransaction(
                    Map.of(place, new OffsetAndMetadata(100 + number)), reader.groupMetadata());
                if (number % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "fenced"));
            producer.flush();
            try (var successor = producer(address, topic)) {
                try {
                    producer.commitTransaction();
                } catch (ProducerFencedException expected) {
                    System.out.println("fenced");
                }
                successor.beginTransaction();
                successor.send(new ProducerRecord<>(topic, 0, null, "last"));
                successor.commitTransaction();
            }
            reader.assign(List.of(place));
            reader.seekToBeginning(List.of(place));
            List<String> values = new ArrayList<>();
            while (!values.contains("last")) {
                reader.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
            }
            System.out.println(values + " " + reader.committed(Set.of(place)).get(place).offset());
        }
    }

    private static KafkaProducer<String, String> producer(String address, String transactionalId) {
        var producer = new KafkaProducer<>(
            Map.<String, Object>of("bootstrap.servers", address, "transactional.id", transactionalId),
            new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }
}
