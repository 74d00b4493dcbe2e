import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.config.TopicBuilder;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.kafka.requestreply.ReplyingKafkaTemplate;
import org.springframework.messaging.handler.annotation.SendTo;

/** Applications that ask, answer and declare topics. */
final class Templates {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private Templates() {}

    /** Asks in one topic and hears the answer in another; whoever says "silent" gets none. */
    static class Asking implements Calls {
        private final ReplyingKafkaTemplate<String, String, String> asking;
        private final String input;

        Asking(
                ReplyingKafkaTemplate<String, String, String> asking,
                ConcurrentKafkaListenerContainerFactory<String, String> factory,
                @Qualifier("template") KafkaTemplate<String, String> template,
                @Value("${in}") String input) {
            this.asking = asking;
            this.input = input;
            factory.setReplyTemplate(template);
        }

        @Bean
        static ReplyingKafkaTemplate<String, String, String> asking(
                ProducerFactory<String, String> producers,
                ConcurrentKafkaListenerContainerFactory<String, String> factory,
                @Value("${out}") String replies) {
            var container = factory.createContainer(replies);
            container.getContainerProperties().setGroupId(replies);
            return new ReplyingKafkaTemplate<>(producers, container);
        }

        @KafkaListener(id = "answering", groupId = "${group}", topics = "${in}")
        @SendTo
        String answer(ConsumerRecord<String, String> record) {
            return record.value().startsWith("silent") ? null : record.value().toUpperCase(Locale.ROOT);
        }

        @Override
        public Object call(String operation, JsonNode with) throws Exception {
            asking.waitForAssignment(PATIENCE);
            var patience = Duration.ofMillis(with.get("patience_ms").longValue());
            return asking.sendAndReceive(new ProducerRecord<>(input, with.get("value").textValue()), patience)
                .get(PATIENCE.toSeconds(), TimeUnit.SECONDS)
                .value();
        }
    }

    /** Declares a topic, which is created or changed to be as declared. */
    static class Declaring implements Calls {
        private final KafkaAdmin admin;

        Declaring(KafkaAdmin admin) {
            this.admin = admin;
            admin.setModifyTopicConfigs(true);
        }

        @Override
        public Object call(String operation, JsonNode with) {
            admin.createOrModifyTopics(TopicBuilder.name(with.get("topic").textValue())
                .partitions(with.get("partitions").intValue())
                .replicas(1)
                .configs(Map.of("retention.ms", with.get("retention_ms").asText()))
                .build());
            return null;
        }
    }
}
