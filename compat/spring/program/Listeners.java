import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.config.KafkaListenerEndpointRegistry;
import org.springframework.kafka.config.ShareKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.listener.AbstractConsumerSeekAware;
import org.springframework.kafka.listener.ContainerProperties.AckMode;
import org.springframework.kafka.listener.ContainerProperties.ShareAckMode;
import org.springframework.kafka.support.Acknowledgment;
import org.springframework.kafka.support.ShareAcknowledgment;

/** Applications that listen. */
final class Listeners {
    private static final Duration PAUSE = Duration.ofMillis(50);

    private Listeners() {}

    /** Hears records one by one, in some threads, and can pause. */
    static class Records implements Calls {
        private final Told told;
        private final KafkaListenerEndpointRegistry registry;

        Records(
                Told told,
                ConcurrentKafkaListenerContainerFactory<String, String> factory,
                KafkaListenerEndpointRegistry registry,
                @Value("${threads:3}") int threads) {
            this.told = told;
            this.registry = registry;
            factory.setConcurrency(threads);
        }

        @KafkaListener(id = "records", groupId = "${group}", topics = "${in}")
        void hear(ConsumerRecord<String, String> record) {
            told.hear(Thread.currentThread().getName(), record);
        }

        @Override
        public Object call(String operation, JsonNode with) {
            var container = Optional.ofNullable(registry.getListenerContainer("records")).orElseThrow();
            switch (operation) {
                case "assigned":
                    return container.getAssignmentsByClientId().values().stream().map(Collection::size).toList();
                case "pause":
                    container.pause();
                    return null;
                case "resume":
                    container.resume();
                    return null;
                case "is_paused":
                    return container.isContainerPaused();
                default:
                    throw new IllegalArgumentException(operation);
            }
        }
    }

    /** Hears several records at once, and wants those from one that says "again" on a second time. */
    static class Batches {
        private final Told told;

        Batches(Told told, ConcurrentKafkaListenerContainerFactory<String, String> factory) {
            this.told = told;
            factory.setBatchListener(true);
            factory.getContainerProperties().setAckMode(AckMode.MANUAL);
        }

        @KafkaListener(id = "batches", groupId = "${group}", topics = "${in}")
        void hear(List<ConsumerRecord<String, String>> records, Acknowledgment acknowledgment) {
            for (int index = 0; index < records.size(); index++) {
                if (told.isFirst("again", records.get(index).value())) {
                    told.hear("refused", records.get(index), records.size());
                    acknowledgment.nack(index, PAUSE);
                    return;
                }
                told.hear("heard", records.get(index), records.size());
            }
            acknowledgment.acknowledge();
        }
    }

    /** Acknowledges records at once, but for those that say "later". */
    static class ByHand {
        private final Told told;

        ByHand(Told told, ConcurrentKafkaListenerContainerFactory<String, String> factory) {
            this.told = told;
            factory.getContainerProperties().setAckMode(AckMode.MANUAL_IMMEDIATE);
        }

        @KafkaListener(id = "by-hand", groupId = "${group}", topics = "${in}")
        void hear(ConsumerRecord<String, String> record, Acknowledgment acknowledgment) {
            told.hear("heard", record);
            if (!record.value().startsWith("later")) {
                acknowledgment.acknowledge();
            }
        }
    }

    /** Goes elsewhere when it is asked to. */
    static class Seeking extends AbstractConsumerSeekAware implements Calls {
        private final Told told;

        Seeking(Told told) {
            this.told = told;
        }

        @KafkaListener(id = "seeking", groupId = "${group}", topics = "${in}")
        void hear(ConsumerRecord<String, String> record) {
            told.hear("heard", record);
        }

        @Override
        public Object call(String operation, JsonNode with) {
            switch (operation) {
                case "seek_to_beginning":
                    seekToBeginning();
                    return null;
                case "seek_to_time":
                    seekToTimestamp(with.get("time_ms").longValue());
                    return null;
                case "seek_back":
                    getTopicsAndCallbacks().forEach((partition, callbacks) -> callbacks.get(0).seekRelative(
                        partition.topic(), partition.partition(), -with.get("records").longValue(), true));
                    return null;
                default:
                    throw new IllegalArgumentException(operation);
            }
        }
    }

    /** Hears all topics whose names begin alike. */
    static class Pattern {
        private final Told told;

        Pattern(Told told) {
            this.told = told;
        }

        @KafkaListener(id = "pattern", groupId = "${group}", topicPattern = "${in}-.*")
        void hear(ConsumerRecord<String, String> record) {
            told.hear("heard", record);
        }
    }

    /** Accepts records of a share group, but for those that say "reject", and "release" at first. */
    static class Sharing {
        private final Told told;

        Sharing(Told told) {
            this.told = told;
        }

        @Bean
        static ShareKafkaListenerContainerFactory<String, String> sharing(Told told) {
            Map<String, Object> settings = Common.settings(told);
            settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
            settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
            var factory = new ShareKafkaListenerContainerFactory<String, String>(
                new DefaultShareConsumerFactory<>(settings));
            factory.getContainerProperties().setShareAckMode(ShareAckMode.MANUAL);
            return factory;
        }

        @KafkaListener(id = "sharing", groupId = "${group}", topics = "${in}", containerFactory = "sharing")
        void hear(ConsumerRecord<String, String> record, ShareAcknowledgment acknowledgment) {
            if (record.value().startsWith("reject")) {
                told.hear("rejected", record);
                acknowledgment.reject();
            } else if (told.isFirst("release", record.value())) {
                told.hear("released", record);
                acknowledgment.release();
            } else {
                told.hear("accepted", record);
                acknowledgment.acknowledge();
            }
        }
    }
}
