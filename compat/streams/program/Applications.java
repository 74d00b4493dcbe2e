import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.streams.KafkaStreams;

/**
 * Runs instances of applications of Kafka Streams: lines of JSON in, lines of JSON out, as
 * {@code compat/scenarios/remote/process.py} describes them.
 *
 * <p>Argument: a folder for state.
 */
public final class Applications {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, Instance> instances = new ConcurrentHashMap<>();
    private final String folder;

    private Applications(String folder) {
        this.folder = folder;
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        output.println(JSON.writeValueAsString(Map.of("client", "kafka-streams", "version", version())));
        Applications applications = new Applications(arguments[0]);
        var workers = Executors.newCachedThreadPool();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode call = JSON.readTree(line);
            workers.execute(() -> {
                try {
                    output.println(JSON.writeValueAsString(applications.answer(call)));
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            });
        }
        Runtime.getRuntime().halt(0);  // whoever has not closed an instance wants no farewell of it
    }

    private static String version() throws IOException {
        try (InputStream file = KafkaStreams.class.getResourceAsStream("/kafka/kafka-streams-version.properties")) {
            Properties properties = new Properties();
            properties.load(file);
            return properties.getProperty("version");
        }
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
        String name = with.get("instance").textValue();
        switch (operation) {
            case "start":
                instances.put(name, new Instance(folder + "/" + name, with));
                return null;
            case "look":
                return instances.get(name).told();
            case "close":
                return instances.remove(name).close();
            case "set_standby_replicas":
                setStandbyReplicas(with);
                return null;
            default:
                throw new IllegalArgumentException(operation);
        }
    }

    /** With the new protocol, that is the broker's to know. */
    private static void setStandbyReplicas(JsonNode with) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", with.get("address").textValue()))) {
            var group = new ConfigResource(ConfigResource.Type.GROUP, with.get("application").textValue());
            var put = new AlterConfigOp(
                new ConfigEntry("streams.num.standby.replicas", with.get("count").asText()),
                AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(group, List.of(put))).all().get();
        }
    }
}
