import java.time.Duration;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.Stores;

/**
 * What applications do.  Each reads the topic {@code APPLICATION-in} and writes {@code APPLICATION-out}; state is kept
 * in memory, so that it comes back from nowhere but the changelogs.
 */
final class Topologies {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Duration WINDOW = Duration.ofSeconds(10);

    /** Applications that have failed where they are meant to. */
    private static final Set<String> FAILED = ConcurrentHashMap.newKeySet();

    private Topologies() {}

    static Topology of(String name, String application) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> input = builder.stream(application + "-in", Consumed.with(TEXT, TEXT));
        KStream<String, String> output = switch (name) {
            case "count" -> count(input);
            case "windows" -> windows(input);
            case "repartition" -> repartition(input);
            case "joins" -> joins(builder, input, application);
            case "fails" -> fails(input, application);
            default -> throw new IllegalArgumentException(name);
        };
        output.to(application + "-out", Produced.with(TEXT, TEXT));
        return builder.build();
    }

    /** Counts the words of lines, and tells each count that a word comes to. */
    private static KStream<String, String> count(KStream<String, String> lines) {
        return lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", TEXT, TEXT))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(TEXT).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> Long.toString(count));
    }

    /** Counts keys by window, and tells the counts of windows that are over. */
    private static KStream<String, String> windows(KStream<String, String> input) {
        return input.groupByKey(Grouped.with("keys", TEXT, TEXT))
            .windowedBy(TimeWindows.ofSizeWithNoGrace(WINDOW))
            .count(Materialized.<String, Long>as(Stores.inMemoryWindowStore("windows", WINDOW, WINDOW, false))
                .withKeySerde(TEXT).withValueSerde(Serdes.Long()))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("waiting"))
            .toStream()
            .map((key, count) -> KeyValue.pair(key.key() + "@" + key.window().start(), Long.toString(count)));
    }

    /** Passes everything on, by way of a topic of three partitions. */
    private static KStream<String, String> repartition(KStream<String, String> input) {
        return input.repartition(Repartitioned.with(TEXT, TEXT).withName("thirds").withNumberOfPartitions(3));
    }

    /** Looks keys up in a table that has as many partitions, and what is found there in one that all have whole. */
    private static KStream<String, String> joins(
            StreamsBuilder builder, KStream<String, String> input, String application) {
        var table = builder.table(application + "-table", Consumed.with(TEXT, TEXT),
            Materialized.<String, String>as(Stores.inMemoryKeyValueStore("table")));
        var everywhere = builder.globalTable(application + "-everywhere", Consumed.with(TEXT, TEXT),
            Materialized.<String, String>as(Stores.inMemoryKeyValueStore("everywhere")));
        return input.join(table, (value, found) -> found + " " + value, Joined.with(TEXT, TEXT, TEXT))
            .join(everywhere, (key, value) -> value.split(" ")[0], (value, found) -> found + " " + value);
    }

    /** Passes everything on, but fails at the first record that says "fail", once. */
    private static KStream<String, String> fails(KStream<String, String> input, String application) {
        return input.peek((key, value) -> {
            if (value.equals("fail") && FAILED.add(application)) {
                throw new IllegalStateException("as it is meant to");
            }
        });
    }
}
