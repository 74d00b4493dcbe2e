import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LastRecord;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * One log of Kafka's after another, as the lines of the standard input say; no broker, no thread, no real clock.
 * Each line is answered by one: what was asked for, or nothing, or "refused" and why.
 */
public class PartitionLogs {
    static final double LOAD_FACTOR = 0.9;
    static final int EXPIRATION_MS = 20 * 86_400_000;
    static final long REAL_TIMES = 1_000_000_000_000L;

    final Clock clock = new Clock();
    final ProducerStateManagerConfig producers = new ProducerStateManagerConfig(EXPIRATION_MS, false);
    final LogDirFailureChannel failures = new LogDirFailureChannel(1);
    final BrokerTopicStats statistics = new BrokerTopicStats();
    final ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>();
    File folder;
    LogConfig config;
    UnifiedLog log;
    Cleaner cleaner;
    LogCleanerManager manager;

    public static void main(String[] arguments) throws Exception {
        PartitionLogs played = new PartitionLogs();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = played.perform(line.split(" "));
                played.setTimesOfFiles();
            } catch (Exception error) {
                answer = "refused " + error.toString().replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    String perform(String[] words) throws Exception {
        switch (words[0]) {
            case "create" -> create(new File(words[1]), Integer.parseInt(words[2]));
            case "configure" -> configure(words);
            case "clock" -> clock.now = Long.parseLong(words[1]);
            case "append" -> append(words);
            case "lead" -> log.assignEpochStartOffset(Integer.parseInt(words[1]), log.logEndOffset());
            case "delete" -> log.maybeIncrementLogStartOffset(
                Long.parseLong(words[1]), LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "roll" -> log.roll();
            case "expire" -> log.removeExpiredProducers(clock.now);
            case "restart" -> restart(words[1].equals("clean"));
            case "clean" -> clean();
            case "tell" -> {
                return tell();
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    /** Segments without a timestamp are as old as their file, which must not depend on the real time. */
    void setTimesOfFiles() {
        if (folder != null) {
            for (File file : folder.listFiles((parent, name) -> name.endsWith(".log"))) {
                if (file.lastModified() > REAL_TIMES) {
                    file.setLastModified(clock.now);
                }
            }
        }
    }

    /** A new log, of which the cleaner remembers so many keys at once. */
    void create(File parent, int keys) throws Exception {
        if (log != null) {
            log.close();
        }
        folder = new File(parent, "log-0");
        Files.createDirectories(folder.toPath());
        int slots = (int) Math.ceil(keys / LOAD_FACTOR);
        SkimpyOffsetMap offsets = new SkimpyOffsetMap(24 * slots);
        Throttler throttler = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", clock);
        cleaner = new Cleaner(0, offsets, 512, 1 << 20, LOAD_FACTOR, throttler, clock, partition -> { });
        logs.clear();
        manager = new LogCleanerManager(List.of(parent), logs, failures);
        log = null;
    }

    void configure(String[] words) throws Exception {
        Properties properties = new Properties();
        for (int index = 1; index < words.length; index++) {
            String[] pair = words[index].split("=", 2);
            properties.setProperty(pair[0], pair[1]);
        }
        config = LogConfig.fromProps(Map.of(), properties);
        if (log == null) {
            open(0, 0, true);
        } else {
            log.updateConfig(config);
        }
    }

    void open(long start, long recoveryPoint, boolean wasClean) throws Exception {
        log = UnifiedLog.create(
            folder, config, start, recoveryPoint, new Inline(), statistics, clock, 900_000, producers, 600_000, failures,
            wasClean, Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        logs.put(log.topicPartition(), log);
    }

    void restart(boolean isClean) throws Exception {
        long start = log.logStartOffset();
        if (isClean) {
            log.prepareActiveSegmentForClose();
        }
        log.flush(true);
        if (isClean) {
            log.close();
        }
        open(start, log.logEndOffset(), isClean);
    }

    void append(String[] words) throws Exception {
        AppendOrigin origin = AppendOrigin.valueOf(words[1]);
        short transactionVersion = Short.parseShort(words[2]);
        ByteBuffer batch = ByteBuffer.wrap(HexFormat.of().parseHex(words[4]));
        log.appendAsLeader(
            MemoryRecords.readableRecords(batch), Integer.parseInt(words[3]), origin, RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, transactionVersion);
        log.updateHighWatermark(log.logEndOffset());
    }

    /** What the cleaner's thread does until it finds nothing any more, or what retention does. */
    void clean() throws Exception {
        Optional<LogToClean> found = manager.grabFilthiestCompactedLog(clock, new PreCleanStats());
        while (found.isPresent()) {
            long end = cleaner.clean(found.get()).getKey();
            manager.doneCleaning(log.topicPartition(), log.parentDirFile(), end);
            shorten();
            found = manager.grabFilthiestCompactedLog(clock, new PreCleanStats());
        }
        shorten();
        if (!config.compact) {
            log.deleteOldSegments();
        }
    }

    void shorten() throws Exception {
        Map<TopicPartition, UnifiedLog> deletable = manager.deletableLogs();
        for (UnifiedLog each : deletable.values()) {
            each.deleteOldSegments();
        }
        manager.doneDeleting(List.copyOf(deletable.keySet()));
    }

    String tell() {
        Map<Long, LastRecord> last = log.lastRecordsOfActiveProducers();
        String active = log.activeProducers().stream()
            .sorted(Comparator.comparingLong(each -> each.producerId()))
            .map(each -> String.format("[%d, %d, %d, %d, %d, %d, %d]",
                each.producerId(), each.producerEpoch(), each.lastSequence(), each.lastTimestamp(),
                each.coordinatorEpoch(), each.currentTxnStartOffset(),
                last.get(each.producerId()).lastDataOffset().orElse(-1)))
            .collect(Collectors.joining(", "));
        String epochs = log.leaderEpochCache().epochEntries().stream()
            .map(each -> String.format("[%d, %d]", each.epoch(), each.startOffset()))
            .collect(Collectors.joining(", "));
        return String.format(
            "{\"log start\": %d, \"log end\": %d, \"last stable\": %d, \"clean up to\": %d, "
                + "\"producers\": [%s], \"leader epochs\": [%s]}",
            log.logStartOffset(), log.logEndOffset(), log.lastStableOffset(),
            manager.allCleanerCheckpoints().getOrDefault(log.topicPartition(), -1L), active, epochs);
    }

    static class Clock implements Time {
        long now;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new IllegalStateException("nothing waits here");
        }
    }

    /** What Kafka leaves to other threads is done at once, and what it puts off is never done. */
    static class Inline implements Scheduler {
        @Override
        public void startup() { }

        @Override
        public void shutdown() { }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            Done done = new Done(task);
            if (delayMs == 0 && periodMs <= 0) {
                done.run();
            }
            return done;
        }

        @Override
        public void resizeThreadPool(int size) { }
    }

    static class Done extends FutureTask<Void> implements ScheduledFuture<Void> {
        Done(Runnable task) {
            super(task, null);
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return Long.MAX_VALUE;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }
    }
}
