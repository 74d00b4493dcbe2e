import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** One instance of an application. */
final class Instance {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final KafkaStreams streams;
    private final AtomicLong restored = new AtomicLong();
    private final List<String> failures = Collections.synchronizedList(new ArrayList<>());

    Instance(String folder, JsonNode with) {
        String application = with.get("application").textValue();
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);  // no count may be passed over
        settings.put(StreamsConfig.producerPrefix("linger.ms"), 5);
        with.get("settings").properties()
            .forEach(each -> settings.put(each.getKey(), each.getValue().textValue()));
        streams = new KafkaStreams(Topologies.of(with.get("topology").textValue(), application), settings);
        var response = StreamThreadExceptionResponse.valueOf(with.get("when_it_fails").textValue());
        streams.setUncaughtExceptionHandler(failure -> {
            failures.add(lowest(failure).toString());
            return response;
        });
        streams.setGlobalStateRestoreListener(new Restoring());
        streams.start();
    }

    private static Throwable lowest(Throwable failure) {
        return failure.getCause() == null ? failure : lowest(failure.getCause());
    }

    Map<String, Object> told() {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("state", streams.state().toString());
        told.put("active", count(ThreadMetadata::activeTasks));
        told.put("standby", count(ThreadMetadata::standbyTasks));
        told.put("restored", restored.get());
        told.put("failures", List.copyOf(failures));
        return told;
    }

    private int count(Function<ThreadMetadata, Set<?>> tasks) {
        return streams.metadataForLocalThreads().stream().map(tasks).mapToInt(Set::size).sum();
    }

    boolean close() {
        return streams.close(PATIENCE);
    }

    /** Counts what comes out of changelogs. */
    private final class Restoring implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition of, String store, long first, long end) {}

        @Override
        public void onBatchRestored(TopicPartition of, String store, long last, long count) {
            restored.addAndGet(count);
        }

        @Override
        public void onRestoreEnd(TopicPartition of, String store, long total) {}
    }
}
