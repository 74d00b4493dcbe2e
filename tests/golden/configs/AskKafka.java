import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.types.Password;

/** Answers questions about settings, one JSON document a line, out of Kafka's jars. */
public class AskKafka {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, String[]> DEFINITIONS = Map.of(
        "broker", new String[] {"org.apache.kafka.server.config.AbstractKafkaConfig", "CONFIG_DEF"},
        "topic", new String[] {"org.apache.kafka.storage.internals.log.LogConfig", "CONFIG"},
        "group", new String[] {"org.apache.kafka.coordinator.group.GroupConfig", "CONFIG_DEF"},
        "client-metrics", new String[] {"org.apache.kafka.server.metrics.ClientMetricsConfigs", "CONFIG"});

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode question = JSON.readTree(line);
            Object answer = switch (question.get("ask").asText()) {
                case "values" -> values(question.get("texts"));
                case "check" -> check(question.get("settings"));
                case "properties" -> properties(question.get("file").asText());
                default -> throw new IllegalArgumentException(line);
            };
            out.println(JSON.writeValueAsString(answer));
        }
    }

    /** What becomes of each text as a value of each setting: "= value" or "! refusal". */
    private static Object values(JsonNode texts) throws Exception {
        ObjectNode all = JSON.createObjectNode();
        Method parse = ConfigDef.class.getDeclaredMethod(
            "parseValue", ConfigDef.ConfigKey.class, Object.class, boolean.class);
        parse.setAccessible(true);
        for (Map.Entry<String, String[]> scope : new TreeMap<>(DEFINITIONS).entrySet()) {
            Field field = Class.forName(scope.getValue()[0]).getDeclaredField(scope.getValue()[1]);
            field.setAccessible(true);
            ConfigDef definition = (ConfigDef) field.get(null);
            for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
                var outcomes = all.putArray(scope.getKey() + "/" + key.name);
                for (JsonNode text : texts)
                    outcomes.add(outcome(parse, definition, key, text.isNull() ? null : text.asText()));
            }
        }
        return all;
    }

    private static String outcome(Method parse, ConfigDef definition, ConfigDef.ConfigKey key, String text)
            throws Exception {
        try {
            Object value = parse.invoke(definition, key, text, true);
            if (value instanceof Password)
                return "= " + ((Password) value).value();
            return value == null ? "=null" : "= " + ConfigDef.convertToString(value, key.type);
        } catch (InvocationTargetException refused) {
            Throwable cause = refused.getCause();
            String kind = cause instanceof ConfigException ? "" : cause.getClass().getSimpleName() + ": ";
            return "! " + kind + cause.getMessage();
        }
    }

    /** Why a node with these settings does not start; null if it would. */
    private static Object check(JsonNode settings) {
        Properties properties = new Properties();
        settings.fields().forEachRemaining(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
        try {
            new kafka.server.KafkaConfig(properties, false);
            return null;
        } catch (ArithmeticException | NumberFormatException unplanned) {
            return unplanned.getClass().getSimpleName() + ": " + unplanned.getMessage();
        } catch (RuntimeException refused) {
            return refused.getMessage();
        }
    }

    /** The pairs in a file, whose bytes are given as Latin-1; null if Java refuses it. */
    private static Object properties(String file) throws Exception {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(file.getBytes(StandardCharsets.ISO_8859_1)));
        } catch (IllegalArgumentException refused) {
            return null;
        }
        return new TreeMap<>(properties);
    }
}
