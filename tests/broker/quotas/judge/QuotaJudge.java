import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/** Plays each line, a history in JSON, to Kafka's own quota managers, and answers with what they say to its steps. */
public class QuotaJudge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long START_MS = 1_700_000_000_000L;

    private final StillTime time = new StillTime();
    private final ClientQuotaManager rates;
    private final ControllerMutationQuotaManager mutations;

    private QuotaJudge(int samples, int sizeSeconds) {
        Metrics metrics = new Metrics(new MetricConfig(), List.of(), time);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(samples, sizeSeconds);
        rates = new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, time, "");
        mutations = new ControllerMutationQuotaManager(config, metrics, time, "", Optional.empty());
    }

    public static void main(String[] arguments) throws Exception {
        var questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode history = JSON.readTree(line);
            var judge = new QuotaJudge(history.get("samples").asInt(), history.get("size_seconds").asInt());
            ArrayNode answers = JSON.createArrayNode();
            for (JsonNode step : history.get("steps"))
                judge.take(step, answers);
            System.out.println(JSON.writeValueAsString(answers));
            judge.rates.shutdown();
            judge.mutations.shutdown();
        }
        System.exit(0);
    }

    private void take(JsonNode step, ArrayNode answers) throws Exception {
        String what = step.get(0).asText();
        switch (what) {
            case "wait" -> {
                time.nowMs += step.get(1).asLong();
                answers.addNull();
            }
            case "limit" -> {
                Optional<Quota> quota = step.get(3).isNull()
                    ? Optional.empty() : Optional.of(Quota.upperBound(step.get(3).asDouble()));
                for (ClientQuotaManager manager : List.of(rates, mutations))
                    manager.updateQuota(user(step.get(1)), clientId(step.get(2)), quota);
                answers.addNull();
            }
            case "use" -> answers.add(rates.maybeRecordAndGetThrottleTimeMs(
                session(step), step.get(2).asText(), step.get(3).asDouble(), time.milliseconds()));
            case "take back" -> {
                if (rates.quotasEnabled())
                    rates.unrecordQuotaSensor(
                        session(step), step.get(2).asText(), step.get(3).asDouble(), time.milliseconds());
                answers.addNull();
            }
            case "most" -> answers.add(
                (int) rates.maxValueInQuotaWindow(session(step), step.get(2).asText()));
            default -> {
                ControllerMutationQuota quota = what.equals("strictly")
                    ? mutations.newStrictQuotaFor(session(step), step.get(2).asText())
                    : mutations.newPermissiveQuotaFor(session(step), step.get(2).asText());
                boolean refused = false;
                try {
                    quota.record(step.get(3).asDouble());
                } catch (ThrottlingQuotaExceededException exceeded) {
                    refused = true;
                }
                answers.addArray().add(refused).add(quota.throttleTime());
            }
        }
    }

    private static Session session(JsonNode step) throws Exception {
        var principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, step.get(1).asText());
        return new Session(principal, InetAddress.getLoopbackAddress());
    }

    /** A user, the default one, or none. */
    private static Optional<ConfigEntity> user(JsonNode name) {
        if (name.isNull())
            return Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
        return name.asText().isEmpty()
            ? Optional.empty() : Optional.of(new ClientQuotaManager.UserEntity(name.asText()));
    }

    private static Optional<ConfigEntity> clientId(JsonNode name) {
        if (name.isNull())
            return Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
        return name.asText().isEmpty()
            ? Optional.empty() : Optional.of(new ClientQuotaManager.ClientIdEntity(name.asText()));
    }

    private static class StillTime implements Time {
        private long nowMs = START_MS;

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            nowMs += ms;
        }
    }
}
