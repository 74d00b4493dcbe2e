import java.io.File;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.SupportedConfigChecker;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.FileRawSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.Snapshots;

/**
 * Loads the newest snapshot of a metadata directory into Kafka's own image, replays the log behind it, and
 * prints what the image holds, a line each, sorted.
 */
public final class MetadataImages {
    private static final int BATCH_BYTES_MAX = 8 << 20;

    private MetadataImages() { }

    public static void main(String[] arguments) throws Exception {
        File directory = new File(arguments[0]);
        MetadataDelta delta = new MetadataDelta.Builder()
            .setImage(MetadataImage.EMPTY)
            .setSupportedConfigChecker(SupportedConfigChecker.TRUE)
            .build();
        OffsetAndEpoch snapshot = newestSnapshot(directory);
        long next = 0;
        int epoch = 0;
        if (snapshot != null) {
            replaySnapshot(directory.toPath(), snapshot, delta);
            delta.finishSnapshot();
            next = snapshot.offset();
            epoch = snapshot.epoch();
        }
        for (File segment : segments(directory)) {
            FileRecords records = FileRecords.open(segment, false);
            for (RecordBatch batch : records.batches()) {
                if (batch.lastOffset() < next) {
                    continue;
                }
                batch.ensureValid();
                if (!batch.isControlBatch()) {
                    for (Record record : batch) {
                        replay(record, delta);
                    }
                }
                next = batch.lastOffset() + 1;
                epoch = batch.partitionLeaderEpoch();
            }
            records.close();
        }
        MetadataImage image = delta.apply(new MetadataProvenance(next - 1, epoch, 0, true));
        List<String> lines = describe(image);
        lines.sort(Comparator.naturalOrder());
        lines.forEach(System.out::println);
    }

    private static OffsetAndEpoch newestSnapshot(File directory) {
        return Stream.of(directory.list())
            .map(name -> Snapshots.parse(Path.of(name)))
            .flatMap(java.util.Optional::stream)
            .filter(path -> !path.partial() && !path.deleted() && path.snapshotId().offset() > 0)
            .map(path -> path.snapshotId())
            .max(Comparator.naturalOrder())
            .orElse(null);
    }

    private static void replaySnapshot(Path directory, OffsetAndEpoch id, MetadataDelta delta) throws Exception {
        try (RecordsSnapshotReader<ApiMessageAndVersion> reader = RecordsSnapshotReader.of(
                FileRawSnapshotReader.open(directory, id),
                MetadataRecordSerde.INSTANCE,
                BufferSupplier.NO_CACHING,
                BATCH_BYTES_MAX,
                true,
                new LogContext())) {
            while (reader.hasNext()) {
                Batch<ApiMessageAndVersion> batch = reader.next();
                for (ApiMessageAndVersion record : batch.records()) {
                    delta.replay(record.message());
                }
            }
        }
    }

    private static List<File> segments(File directory) {
        return Stream.of(directory.listFiles())
            .filter(file -> file.getName().endsWith(".log"))
            .sorted()
            .toList();
    }

    private static void replay(Record record, MetadataDelta delta) {
        ApiMessageAndVersion read = MetadataRecordSerde.INSTANCE.read(
            new ByteBufferAccessor(record.value()), record.valueSize());
        MetadataRecordType type = MetadataRecordType.fromId(read.message().apiKey());
        switch (type) {
            case BEGIN_TRANSACTION_RECORD, END_TRANSACTION_RECORD, NO_OP_RECORD -> { }
            case ABORT_TRANSACTION_RECORD -> throw new IllegalStateException("a transaction was aborted");
            default -> delta.replay(read.message());
        }
    }

    private static List<String> describe(MetadataImage image) {
        List<String> lines = new ArrayList<>();
        image.features().metadataVersion().ifPresent(
            version -> lines.add("feature metadata.version " + version.featureLevel()));
        image.features().finalizedVersions().forEach(
            (name, level) -> lines.add("feature " + name + " " + level));
        image.cluster().brokers().values().forEach(broker -> lines.add(describe(broker)));
        image.cluster().controllers().values().forEach(controller -> lines.add(
            "controller " + controller.id() + " " + controller.incarnationId()
                + " " + endpoints(controller.listeners())));
        image.topics().topicsByName().forEach((name, topic) -> {
            lines.add("topic " + name + " " + topic.id());
            topic.partitions().forEach((index, partition) ->
                lines.add("partition " + name + " " + index + " " + describe(partition)));
        });
        image.configs().resourceData().forEach((resource, configs) -> configs.data().forEach((key, value) ->
            lines.add("config " + resource.type().id() + " " + resource.name() + " " + key + "=" + value)));
        lines.add("producer ids " + image.producerIds().nextProducerId());
        lines.add("end " + (image.offset() + 1));
        return lines;
    }

    private static String describe(BrokerRegistration broker) {
        return "broker " + broker.id() + " epoch " + broker.epoch() + " " + broker.incarnationId()
            + " rack " + broker.rack().orElse("-") + " fenced " + broker.fenced()
            + " shutdown " + broker.inControlledShutdown() + " directories " + uuids(broker.directories())
            + " " + endpoints(broker.listeners());
    }

    private static String describe(PartitionRegistration partition) {
        return "replicas " + numbers(partition.replicas) + " isr " + numbers(partition.isr)
            + " removing " + numbers(partition.removingReplicas) + " adding " + numbers(partition.addingReplicas)
            + " elr " + numbers(partition.elr) + " last " + numbers(partition.lastKnownElr)
            + " leader " + partition.leader + " recovery " + partition.leaderRecoveryState.value()
            + " epochs " + partition.leaderEpoch + " " + partition.partitionEpoch
            + " directories " + uuids(Arrays.asList(partition.directories));
    }

    private static String endpoints(Map<String, Endpoint> listeners) {
        return listeners.values().stream()
            .map(each -> each.listener() + "://" + each.host() + ":" + each.port())
            .sorted()
            .collect(Collectors.joining(","));
    }

    private static String numbers(int[] values) {
        return IntStream.of(values).mapToObj(Integer::toString).collect(Collectors.joining(",", "[", "]"));
    }

    private static String uuids(List<Uuid> values) {
        return values.stream().map(Uuid::toString).collect(Collectors.joining(",", "[", "]"));
    }
}
