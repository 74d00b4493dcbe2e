import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.common.TopicPartition;

/** Administrative calls about transactions. */
final class TransactionAdminCalls implements Subject {
    private final AdminClient admin;

    TransactionAdminCalls(AdminClient admin) {
        this.admin = admin;
    }

    @Override
    public Object call(String operation, JsonNode with) throws Exception {
        switch (operation) {
            case "list_transactions" -> {
                return listTransactions();
            }
            case "describe_transaction" -> {
                return describe(with.get("transactional_id").textValue());
            }
            case "fence_producer" ->
                admin.fenceProducers(List.of(with.get("transactional_id").textValue())).all().get();
            case "abort_transaction" -> abort(Values.partition(with.get("partition")));
            default -> throw new IllegalArgumentException(operation);
        }
        return null;
    }

    private Map<String, String> listTransactions() throws Exception {
        Map<String, String> told = new LinkedHashMap<>();
        for (TransactionListing each : admin.listTransactions().all().get()) {
            told.put(each.transactionalId(), each.state().toString());
        }
        return told;
    }

    private List<Object> describe(String transactionalId) throws Exception {
        TransactionDescription found =
            admin.describeTransactions(List.of(transactionalId)).description(transactionalId).get();
        return List.of(
            found.state().toString(), found.transactionTimeoutMs(), Values.told(found.topicPartitions()));
    }

    private void abort(TopicPartition partition) throws Exception {
        var found = admin.describeProducers(List.of(partition)).partitionResult(partition).get();
        for (ProducerState each : found.activeProducers()) {
            if (each.currentTransactionStartOffset().isPresent()) {
                admin.abortTransaction(new AbortTransactionSpec(
                    partition,
                    each.producerId(),
                    (short) each.producerEpoch(),
                    each.coordinatorEpoch().orElse(0))).all().get();
            }
        }
    }
}
