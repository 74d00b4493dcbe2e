import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;

/** What calls are made on: the library itself, or one of its objects. */
interface Subject {
    /** Carries out one call; what it gives must be made of what JSON knows, and of bytes. */
    Object call(String operation, JsonNode with) throws Exception;

    /** Partitions gained and lost since this was asked last. */
    default List<Object> events() {
        return List.of();
    }
}
