import java.util.List;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.BatchListenerFailedException;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.util.backoff.FixedBackOff;

/** Applications that fail at values that begin with "bad", always, or "once". */
final class Failing {
    private static final FixedBackOff THREE_TIMES = new FixedBackOff(50, 2);

    private Failing() {}

    /** Tries a record three times, and passes it on to a dead-letter topic. */
    static class Records {
        private final Told told;

        Records(
                Told told,
                ConcurrentKafkaListenerContainerFactory<String, String> factory,
                KafkaTemplate<String, String> template) {
            this.told = told;
            factory.setCommonErrorHandler(
                new DefaultErrorHandler(new DeadLetterPublishingRecoverer(template), THREE_TIMES));
        }

        @KafkaListener(id = "records", groupId = "${group}", topics = "${in}")
        void hear(ConsumerRecord<String, String> record) {
            told.hear("heard", record);
            Told.failAt("bad", record.value());
        }
    }

    /** Says which record of a batch fails: what comes before it is done, and what comes after it is heard again. */
    static class Batches {
        private final Told told;

        Batches(
                Told told,
                ConcurrentKafkaListenerContainerFactory<String, String> factory,
                KafkaTemplate<String, String> template) {
            this.told = told;
            factory.setBatchListener(true);
            factory.setCommonErrorHandler(
                new DefaultErrorHandler(new DeadLetterPublishingRecoverer(template), THREE_TIMES));
        }

        @KafkaListener(id = "batches", groupId = "${group}", topics = "${in}")
        void hear(List<ConsumerRecord<String, String>> records) {
            for (var record : records) {
                told.hear("heard", record, records.size());
                if (record.value().startsWith("bad")) {
                    throw new BatchListenerFailedException("as it is meant to", record);
                }
            }
        }
    }

    /** Tries records again by way of topics that wait longer and longer, and hears those that are given up. */
    @EnableKafkaRetryTopic
    static class Retrying {
        private final Told told;

        Retrying(Told told) {
            this.told = told;
        }

        @Bean
        static ThreadPoolTaskScheduler scheduler() {
            return new ThreadPoolTaskScheduler();
        }

        @RetryableTopic(attempts = "3", backOff = @BackOff(delay = 100, multiplier = 2), numPartitions = "2",
            kafkaTemplate = "template")
        @KafkaListener(id = "retrying", groupId = "${group}", topics = "${in}")
        void hear(ConsumerRecord<String, String> record) {
            told.hear("heard", record);
            Told.failAt("bad", record.value());
            if (told.isFirst("once", record.value())) {
                throw new IllegalStateException("once");
            }
        }

        @DltHandler
        void bury(ConsumerRecord<String, String> record) {
            told.hear("buried", record);
        }
    }
}
