import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.JobManagerOptions;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;

/**
 * Runs jobs of Flink on a cluster in this process: lines of JSON in, lines of JSON out, as
 * {@code compat/scenarios/remote/process.py} describes them.
 *
 * <p>Arguments: the version of the connector, whose jar does not tell it, and a folder for checkpoints.
 */
public final class Jobs {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String LOOPBACK = "127.0.0.1";
    private static final int SLOTS = 32;  // for all jobs that run at a time, as many as each is wide

    private final MiniCluster cluster;
    private final String savepoints;
    private final Map<String, JobID> jobs = new ConcurrentHashMap<>();

    private Jobs(String folder) throws Exception {
        savepoints = "file://" + folder + "/savepoints";
        Configuration settings = new Configuration();
        settings.set(RestOptions.ADDRESS, LOOPBACK);
        settings.set(RestOptions.BIND_ADDRESS, LOOPBACK);
        settings.set(RestOptions.BIND_PORT, "0");
        settings.set(JobManagerOptions.ADDRESS, LOOPBACK);
        settings.set(JobManagerOptions.BIND_HOST, LOOPBACK);
        settings.set(TaskManagerOptions.HOST, LOOPBACK);
        settings.set(TaskManagerOptions.BIND_HOST, LOOPBACK);
        settings.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(32));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(64));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(64));
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, "file://" + folder + "/checkpoints");
        cluster = new MiniCluster(
            new MiniClusterConfiguration.Builder()
                .setConfiguration(settings)
                .setNumTaskManagers(1)
                .setNumSlotsPerTaskManager(SLOTS)
                .build());
        cluster.start();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Jobs jobs = new Jobs(arguments[1]);
        output.println(JSON.writeValueAsString(Map.of("client", "flink-connector-kafka", "version", arguments[0])));
        var workers = Executors.newCachedThreadPool();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode call = JSON.readTree(line);
            workers.execute(() -> {
                try {
                    output.println(JSON.writeValueAsString(jobs.answer(call)));
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            });
        }
        Runtime.getRuntime().halt(0);  // whoever has not cancelled a job wants no farewell of it
    }

    private Map<String, Object> answer(JsonNode call) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", call.get("id").intValue());
        try {
            answer.put("gives", carryOut(call.get("do").textValue(), call.get("with")));
        } catch (Exception error) {
            answer.put("error", "failed");
            answer.put("text", error.toString());
        }
        return answer;
    }

    private Object carryOut(String operation, JsonNode with) throws Exception {
        String name = with.get("job").textValue();
        switch (operation) {
            case "start":
                jobs.put(name, cluster.submitJob(new Job(name, with).graph()).get().getJobID());
                return null;
            case "heard":
                return Told.of(name).heard();
            case "state":
                return cluster.getJobStatus(jobs.get(name)).get().toString();
            case "failure":
                return cluster.requestJobResult(jobs.get(name)).get().getSerializedThrowable()
                    .map(error -> error.getFullStringifiedStackTrace()).orElse("");
            case "checkpoint":
                return cluster.triggerCheckpoint(jobs.get(name)).get();
            case "stop":
                return cluster.stopWithSavepoint(jobs.get(name), savepoints, false, SavepointFormatType.CANONICAL)
                    .get();
            case "cancel":
                cluster.cancelJob(jobs.get(name)).get();
                return cluster.requestJobResult(jobs.get(name)).get().isSuccess();
            default:
                throw new IllegalArgumentException(operation);
        }
    }
}
