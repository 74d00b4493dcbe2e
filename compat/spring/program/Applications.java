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

/**
 * Runs applications of Spring Kafka: lines of JSON in, lines of JSON out, as
 * {@code compat/scenarios/remote/process.py} describes them.
 *
 * <p>Argument: the version of Spring Kafka, whose jar does not tell it.
 */
public final class Applications {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, Application> applications = new ConcurrentHashMap<>();

    private Applications() {}

    public static void main(String[] arguments) throws IOException {
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        output.println(JSON.writeValueAsString(Map.of("client", "spring-kafka", "version", arguments[0])));
        Applications applications = new Applications();
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
        Runtime.getRuntime().halt(0);  // whoever has not closed an application wants no farewell of it
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
        String name = with.get("application").textValue();
        switch (operation) {
            case "start":
                applications.put(name, new Application(with));
                return null;
            case "heard":
                return applications.get(name).heard();
            case "close":
                applications.remove(name).close();
                return null;
            default:
                return applications.get(name).call(operation, with);
        }
    }
}
