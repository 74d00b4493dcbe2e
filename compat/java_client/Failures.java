import java.lang.reflect.InvocationTargetException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.regex.Pattern;

import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;

/** Says in an answer what went wrong. */
final class Failures {
    // By name, since older clients do not have them all.  What is in an invalid state was aborted meanwhile.
    private static final Set<String> FENCED =
        Set.of("ProducerFencedException", "InvalidProducerEpochException", "InvalidTxnStateException");
    private static final Set<String> COMMIT_FAILED =
        Set.of("CommitFailedException", "RebalanceInProgressException");

    private static final Pattern QUALIFIED = Pattern.compile("\\b(?:\\w+[./])+(?=\\p{Upper})");

    private static final Pattern METHOD = Pattern.compile("^'(?:\\S+ )?(\\S+)\\(.*\\)'$");

    private Failures() {}

    /** The library has no way to do what it is asked for. */
    static final class NotOffered extends RuntimeException {
        private static final long serialVersionUID = 1;

        NotOffered(String reason) {
            super(reason);
        }
    }

    static Map<String, Object> told(Throwable thrown) {
        Throwable error = cause(thrown);
        if (error instanceof NotOffered) {
            return failure("not offered", error.getMessage());
        }
        if (error instanceof LinkageError) {
            String missing = QUALIFIED.matcher(error.getMessage()).replaceAll("");
            return failure("not offered", "it has no " + METHOD.matcher(missing).replaceFirst("$1"));
        }
        if (FENCED.contains(error.getClass().getSimpleName())) {
            return failure("fenced", error.toString());
        }
        if (COMMIT_FAILED.contains(error.getClass().getSimpleName())) {
            return failure("commit failed", error.toString());
        }
        short code = code(error);
        if (code <= 0) {
            return failure("failed", error.toString());
        }
        Map<String, Object> refusal = failure("refused", error.toString());
        refusal.put("code", code);
        return refusal;
    }

    private static Map<String, Object> failure(String kind, String text) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("error", kind);
        told.put("text", text);
        return told;
    }

    /** What lies below wrappers. */
    private static Throwable cause(Throwable thrown) {
        Throwable error = thrown;
        while (error.getCause() != null
                && (error instanceof ExecutionException
                    || error instanceof CompletionException
                    || error instanceof InvocationTargetException
                    || error.getClass() == KafkaException.class)) {
            error = error.getCause();
        }
        return error;
    }

    /** Kafka's number of an error, or one that is not positive. */
    private static short code(Throwable error) {
        if (error instanceof OffsetOutOfRangeException) {
            return Errors.OFFSET_OUT_OF_RANGE.code();
        }
        return error instanceof ApiException ? Errors.forException(error).code() : Errors.NONE.code();
    }
}
