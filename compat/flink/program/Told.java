import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What a job tells, of all its attempts, in the order in which it heard it. */
final class Told {
    private static final Map<String, Told> BY_JOB = new ConcurrentHashMap<>();

    private final List<Map<String, Object>> heard = Collections.synchronizedList(new ArrayList<>());
    private final Set<String> failed = ConcurrentHashMap.newKeySet();

    private Told() {}

    static Told of(String job) {
        return BY_JOB.computeIfAbsent(job, name -> new Told());
    }

    void hear(int by, Heard record) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("by", by);
        told.put("topic", record.topic);
        told.put("partition", record.partition);
        told.put("offset", record.offset);
        told.put("value", record.value);
        heard.add(told);
    }

    List<Map<String, Object>> heard() {
        synchronized (heard) {
            return List.copyOf(heard);
        }
    }

    /** Whether a value that begins with this word comes for the first time. */
    boolean isFirst(String word, String value) {
        return value.startsWith(word) && failed.add(value);
    }
}
