import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.kafka.transaction.KafkaTransactionManager;

/** Applications that write in transactions. */
final class Transactions {
    private Transactions() {}

    /** Passes records on exactly once; fails after one that begins with "fail", once, and may hang at "hang". */
    static class Forwarding {
        private final Told told;
        private final KafkaTemplate<String, String> template;
        private final String output;
        private final boolean hangs;

        Forwarding(
                Told told,
                ConcurrentKafkaListenerContainerFactory<String, String> factory,
                ProducerFactory<String, String> producers,
                KafkaTemplate<String, String> template,
                @Value("${out}") String output,
                @Value("${hangs:false}") boolean hangs) {
            this.told = told;
            this.hangs = hangs;
            this.template = template;
            this.output = output;
            factory.getContainerProperties().setKafkaAwareTransactionManager(
                new KafkaTransactionManager<>(producers));
        }

        @KafkaListener(id = "forwarding", groupId = "${group}", topics = "${in}")
        void forward(ConsumerRecord<String, String> record) throws Exception {
            template.send(output, record.key(), record.value()).get();
            told.hear("heard", record);
            if (hangs && record.value().startsWith("hang")) {
                Thread.sleep(Long.MAX_VALUE);
            }
            if (told.isFirst("fail", record.value())) {
                throw new IllegalStateException("as it is meant to");
            }
        }
    }

    /** Sends several records in a transaction when it is asked to, and gives it up at one that says "fail". */
    static class Sending implements Calls {
        private final KafkaTemplate<String, String> template;
        private final String output;

        Sending(KafkaTemplate<String, String> template, @Value("${out}") String output) {
            this.template = template;
            this.output = output;
        }

        @Override
        public Object call(String operation, JsonNode with) {
            return template.executeInTransaction(operations -> {
                for (JsonNode value : with.get("values")) {
                    operations.send(output, value.textValue()).join();
                    Told.failAt("fail", value.textValue());
                }
                return with.get("values").size();
            });
        }
    }
}
