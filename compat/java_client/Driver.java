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
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Carries out calls with the Java client: lines of JSON in, lines of JSON out, as
 * {@code compat/scenarios/remote/process.py} describes them.
 */
public final class Driver implements Subject {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<Integer, Subject> subjects = new ConcurrentHashMap<>(Map.of(0, this));
    private final AtomicInteger opened = new AtomicInteger();
    private final ExecutorService workers = Executors.newCachedThreadPool();
    private final PrintStream output;

    private Driver(PrintStream output) {
        this.output = output;
    }

    public static void main(String[] arguments) throws IOException {
        Driver driver = new Driver(new PrintStream(System.out, false, StandardCharsets.UTF_8));
        driver.print(Map.of("client", "kafka-clients", "version", version()));
        driver.serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
        System.exit(0);
    }

    private static String version() throws IOException {
        try (InputStream file = Driver.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            Properties properties = new Properties();
            properties.load(file);
            return properties.getProperty("version");
        }
    }

    private void serve(BufferedReader input) throws IOException {
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode call = JSON.readTree(line);
            workers.execute(() -> print(answer(call)));
        }
    }

    private Map<String, Object> answer(JsonNode call) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", call.get("id").intValue());
        Subject subject = subjects.get(call.get("on").intValue());
        try {
            answer.put("gives", subject.call(call.get("do").textValue(), call.get("with")));
        } catch (Exception | LinkageError error) {
            answer.putAll(Failures.told(error));
        }
        List<Object> events = subject.events();
        if (!events.isEmpty()) {
            answer.put("events", events);
        }
        return answer;
    }

    private void print(Map<String, Object> line) {
        String text;
        try {
            text = JSON.writeValueAsString(line);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
        synchronized (output) {
            output.println(text);
            output.flush();
        }
    }

    @Override
    public Object call(String operation, JsonNode with) {
        Subject subject = switch (operation) {
            case "producer" -> ProducerCalls.plain(with);
            case "transactional_producer" -> ProducerCalls.transactional(with, this::consumer);
            case "consumer" -> new ConsumerCalls(with);
            case "share_consumer" -> new ShareConsumerCalls(with);
            case "admin" -> new AdminCalls(with);
            default -> throw new IllegalArgumentException(operation);
        };
        int number = opened.incrementAndGet();
        subjects.put(number, subject);
        return number;
    }

    private ConsumerCalls consumer(int number) {
        return (ConsumerCalls) subjects.get(number);
    }
}
