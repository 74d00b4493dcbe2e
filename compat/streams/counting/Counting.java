import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

import org.apache.kafka.streams.state.Stores;

/**
 * Instances of applications that count the words of lines exactly once; every count that a word comes to is told.
 *
 * <p>Arguments: the broker's address, and a folder for state. Each line of the input is a command, and each line of
 * the output an answer to one: {@code start INSTANCE APPLICATION PROTOCOL}, {@code tasks INSTANCE},
 * {@code state INSTANCE} and {@code close INSTANCE}.
 */
public class Counting {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final Map<String, KafkaStreams> instances = new HashMap<>();
    private final String address;
    private final String folder;

    private Counting(String address, String folder) {
        this.address = address;
        this.folder = folder;
    }

    public static void main(String[] arguments) throws Exception {
        var counting = new Counting(arguments[0], arguments[1]);
        var commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            System.out.println(counting.obey(line.split(" ")));
        }
    }

    private String obey(String[] words) {
        String instance = words[1];
        switch (words[0]) {
            case "start":
                KafkaStreams streams = new KafkaStreams(topology(words[2]), settings(instance, words[2], words[3]));
                streams.setUncaughtExceptionHandler(failure -> {
                    failure.printStackTrace();
                    return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler
                        .StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                });
                instances.put(instance, streams);
                streams.start();
                return "started";
            case "state":
                return instances.get(instance).state().toString();
            case "tasks":
                return Integer.toString(instances.get(instance).metadataForLocalThreads().stream()
                    .map(ThreadMetadata::activeTasks).mapToInt(java.util.Set::size).sum());
            case "close":
                return Boolean.toString(instances.remove(instance).close(PATIENCE));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static Topology topology(String application) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(application + "-lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(application + "-counts", Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    private Properties settings(String instance, String application, String protocol) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.CLIENT_ID_CONFIG, instance);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder + "/" + instance);
        settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, protocol);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);  // no count may be passed over
        settings.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 3000);
        if (protocol.equals("classic")) {
            settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 3000);
            settings.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 500);
        }
        return settings;
    }
}
