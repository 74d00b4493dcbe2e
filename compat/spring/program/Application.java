import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.MapPropertySource;

/** One application: a context of Spring with the configuration that it is started with. */
final class Application {
    private final AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
    private final Told told;

    Application(JsonNode with) throws ClassNotFoundException {
        told = new Told(
            with.get("address").textValue(), settings(with.get("consumer")), settings(with.get("producer")));
        context.getEnvironment().getPropertySources().addFirst(
            new MapPropertySource("told", settings(with.get("properties"))));
        context.registerBean(Told.class, () -> told);
        context.register(Common.class, Class.forName(with.get("configuration").textValue()));
        context.refresh();
    }

    private static Map<String, Object> settings(JsonNode fields) {
        Map<String, Object> settings = new LinkedHashMap<>();
        fields.properties().forEach(each -> settings.put(each.getKey(), each.getValue().textValue()));
        return settings;
    }

    List<Map<String, Object>> heard() {
        return told.heard();
    }

    Object call(String operation, JsonNode with) throws Exception {
        return context.getBean(Calls.class).call(operation, with);
    }

    void close() {
        context.close();
    }
}
