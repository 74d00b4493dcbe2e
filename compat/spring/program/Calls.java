import com.fasterxml.jackson.databind.JsonNode;

/** What an application does when it is asked to. */
interface Calls {
    Object call(String operation, JsonNode with) throws Exception;
}
