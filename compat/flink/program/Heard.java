import java.nio.charset.StandardCharsets;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** A record as the source gives it to a job; public, and without final fields, for Flink's serializers. */
public class Heard {
    public String topic;
    public int partition;
    public long offset;
    public String value;

    static final class Schema implements KafkaRecordDeserializationSchema<Heard> {
        private static final long serialVersionUID = 1;

        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Heard> out) {
            Heard heard = new Heard();
            heard.topic = record.topic();
            heard.partition = record.partition();
            heard.offset = record.offset();
            heard.value = new String(record.value(), StandardCharsets.UTF_8);
            out.collect(heard);
        }

        @Override
        public TypeInformation<Heard> getProducedType() {
            return TypeInformation.of(Heard.class);
        }
    }
}
