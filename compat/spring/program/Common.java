import java.util.HashMap;
import java.util.Map;

import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;

/** The beans that all applications have; a producer that has a transactional id is one for transactions. */
@Configuration(proxyBeanMethods = false)
@EnableKafka
class Common {
    private static final long POLL_MS = 100;  // how soon a listener that hears nothing seeks or pauses

    @Bean
    ConsumerFactory<String, String> consumers(Told told) {
        Map<String, Object> settings = settings(told);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.putAll(told.consumer);
        return new DefaultKafkaConsumerFactory<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    @Bean
    ProducerFactory<String, String> producers(Told told) {
        Map<String, Object> settings = settings(told);
        settings.putAll(told.producer);
        settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class);
        settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class);
        return new DefaultKafkaProducerFactory<>(settings);
    }

    @Bean
    KafkaTemplate<String, String> template(ProducerFactory<String, String> producers) {
        return new KafkaTemplate<>(producers);
    }

    @Bean
    KafkaAdmin admin(Told told) {
        return new KafkaAdmin(settings(told));
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory(
            ConsumerFactory<String, String> consumers) {
        var factory = new ConcurrentKafkaListenerContainerFactory<String, String>();
        factory.setConsumerFactory(consumers);
        factory.getContainerProperties().setPollTimeout(POLL_MS);
        return factory;
    }

    static Map<String, Object> settings(Told told) {
        return new HashMap<>(Map.of(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, told.address));
    }
}
