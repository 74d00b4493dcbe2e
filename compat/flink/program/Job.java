import java.time.Duration;
import java.util.Properties;
import java.util.regex.Pattern;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;

/** A job that hears records of topics, may count them by value, and may pass them or the counts on to a topic. */
final class Job {
    private static final Duration NEVER = Duration.ofHours(1);  // checkpoints are taken when they are asked for

    private final String name;
    private final JsonNode with;

    Job(String name, JsonNode with) {
        this.name = name;
        this.with = with;
    }

    StreamGraph graph() {
        Configuration settings = new Configuration();
        settings.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, NEVER);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, with.get("restarts").intValue());
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(50));
        var environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        environment.setParallelism(with.get("parallelism").intValue());
        DataStream<Heard> heard =
            environment.fromSource(source(), WatermarkStrategy.noWatermarks(), "source").uid("source");
        DataStream<Heard> counted = with.get("counts").booleanValue()
            ? heard.keyBy(each -> each.value).process(new Count()).uid("count")
            : heard;
        counted.map(new Listen(name, with.get("hangs").booleanValue())).uid("listen").sinkTo(sink()).uid("sink");
        StreamGraph graph = environment.getStreamGraph();
        graph.setJobName(name);
        if (with.hasNonNull("checkpoint")) {
            graph.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(with.get("checkpoint").textValue()));
        }
        return graph;
    }

    private KafkaSource<Heard> source() {
        var builder = KafkaSource.<Heard>builder()
            .setBootstrapServers(with.get("address").textValue())
            .setGroupId(with.get("group").textValue())
            .setStartingOffsets(place(with.get("since")))
            .setDeserializer(new Heard.Schema())
            .setProperties(properties("consumer"));
        if (with.hasNonNull("pattern")) {
            builder.setTopicPattern(Pattern.compile(with.get("pattern").textValue()));
        } else {
            builder.setTopics(with.get("topic").textValue());
        }
        if (with.hasNonNull("until")) {
            builder.setBounded(place(with.get("until")));
        }
        return builder.build();
    }

    /** A time in milliseconds, or a word. */
    @SuppressWarnings("deprecation")  // the connector asks for what Kafka's client has given up
    private static OffsetsInitializer place(JsonNode place) {
        if (place.isNumber()) {
            return OffsetsInitializer.timestamp(place.longValue());
        }
        switch (place.textValue()) {
            case "earliest":
                return OffsetsInitializer.earliest();
            case "latest":
                return OffsetsInitializer.latest();
            case "committed":
                return OffsetsInitializer.committedOffsets(OffsetResetStrategy.EARLIEST);
            default:
                throw new IllegalArgumentException(place.textValue());
        }
    }

    private Sink<String> sink() {
        if (!with.hasNonNull("output")) {
            return new DiscardingSink<>();
        }
        var records = KafkaRecordSerializationSchema.<String>builder()
            .setTopic(with.get("output").textValue())
            .setValueSerializationSchema(new SimpleStringSchema())
            .build();
        var builder = KafkaSink.<String>builder()
            .setBootstrapServers(with.get("address").textValue())
            .setRecordSerializer(records)
            .setKafkaProducerConfig(properties("producer"));
        if (with.hasNonNull("transactions")) {
            builder.setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(with.get("group").textValue())
                .setTransactionNamingStrategy(TransactionNamingStrategy.valueOf(with.get("transactions").textValue()));
        } else {
            builder.setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE);
        }
        return builder.build();
    }

    private Properties properties(String kind) {
        Properties properties = new Properties();
        with.get(kind).properties().forEach(each -> properties.put(each.getKey(), each.getValue().textValue()));
        return properties;
    }
}
