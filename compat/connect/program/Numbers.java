import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Counts: each of its tasks writes the numbers from 0 on to a partition, and goes on where it was. */
public final class Numbers extends SourceConnector {
    private static final int AT_A_TIME = 5;
    private static final int PAUSE_MS = 20;

    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> given) {
        settings = given;
    }

    @Override
    public void stop() {}

    @Override
    public Class<? extends Task> taskClass() {
        return Counter.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> tasks = new ArrayList<>();
        for (int number = 0; number < most; number++) {
            tasks.add(Map.of("topic", settings.get("topic"), "partition", String.valueOf(number)));
        }
        return tasks;
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "");
    }

    @Override
    public String version() {
        return "1";
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> given) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public boolean alterOffsets(Map<String, String> given, Map<Map<String, ?>, Map<String, ?>> offsets) {
        return true;
    }

    /** Counts on one partition. */
    public static final class Counter extends SourceTask {
        private String topic;
        private int partition;
        private long next;

        @Override
        public void start(Map<String, String> given) {
            topic = given.get("topic");
            partition = Integer.parseInt(given.get("partition"));
            Map<String, Object> known = context.offsetStorageReader().offset(source());
            next = known == null ? 0 : ((Number) known.get("next")).longValue();
        }

        private Map<String, String> source() {
            return Map.of("partition", String.valueOf(partition));
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(PAUSE_MS);
            List<SourceRecord> records = new ArrayList<>();
            while (records.size() < AT_A_TIME) {
                long number = next++;
                records.add(new SourceRecord(
                    source(), Map.of("next", next), topic, partition, null, null, Schema.INT64_SCHEMA, number));
            }
            return records;
        }

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1";
        }
    }
}
