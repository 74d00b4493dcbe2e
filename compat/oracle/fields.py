"""Fields of answers that are not compared as they are, and why."""

from typing import Final

LEFT_OUT: Final = {
    "ApiVersions.finalized_features_epoch": "an offset in the metadata log",
    "DescribeQuorum.nodes.listeners.port": "that of the controller, which nobody has chosen",
    "DescribeQuorum.topics.partitions.current_voters.log_end_offset": "an offset in the metadata log",
    "DescribeQuorum.topics.partitions.high_watermark": "an offset in the metadata log",
    "DescribeQuorum.topics.partitions.leader_epoch": "counts elections, of which a busy Kafka has several",
    "DescribeLogDirs.results.total_bytes": "the size of the disk",
    "DescribeLogDirs.results.usable_bytes": "what is free on the disk",
}
"""Not compared at all."""

TEXTS: Final = ("DescribeConfigs.results.configs.documentation",)
"""Compared by whether there is a text: the words are everybody's own."""

ADDRESSES: Final = {
    "DescribeCluster.brokers.host": "host",
    "DescribeCluster.brokers.port": "port",
    "FindCoordinator.coordinators.host": "host",
    "FindCoordinator.coordinators.port": "port",
    "FindCoordinator.host": "host",
    "FindCoordinator.port": "port",
    "Metadata.brokers.host": "host",
    "Metadata.brokers.port": "port",
    "ShareAcknowledge.node_endpoints.host": "host",
    "ShareAcknowledge.node_endpoints.port": "port",
    "ShareFetch.node_endpoints.host": "host",
    "ShareFetch.node_endpoints.port": "port",
}
"""Compared with the address by which the broker was reached."""

DRAWN: Final = {
    "Fetch.session_id": "session",
    "InitProducerId.producer_id": "producer",
}
"""Numbers that the broker draws or counts: compared by the order in which they are first seen; 0 and -1 are
themselves."""

RECALLED: Final = {
    "DescribeProducers.topics.partitions.active_producers.producer_id": "producer",
    "DescribeTransactions.transaction_states.producer_id": "producer",
    "EndTxn.producer_id": "producer",
    "Fetch.responses.partitions.aborted_transactions.producer_id": "producer",
    "ListTransactions.transaction_states.producer_id": "producer",
    "WriteTxnMarkers.markers.producer_id": "producer",
}
"""Numbers that have a name if the broker has drawn them in the same conversation."""

TIMES: Final = (
    "DescribeProducers.topics.partitions.active_producers.last_timestamp",
    "DescribeQuorum.topics.partitions.current_voters.last_caught_up_timestamp",
    "DescribeQuorum.topics.partitions.current_voters.last_fetch_timestamp",
    "DescribeTransactions.transaction_states.transaction_start_time_ms",
    "ListOffsets.topics.partitions.timestamp",
    "Produce.responses.partition_responses.log_append_time_ms",
)
"""Compared as they are if they lie before the recording began, else as "now"."""

UNORDERED: Final = (
    "AddPartitionsToTxn.results_by_topic_v3_and_below",
    "AddPartitionsToTxn.results_by_topic_v3_and_below.results_by_partition",
    "AddPartitionsToTxn.results_by_transaction",
    "AddPartitionsToTxn.results_by_transaction.topic_results",
    "AddPartitionsToTxn.results_by_transaction.topic_results.results_by_partition",
    "AlterClientQuotas.entries",
    "AlterClientQuotas.entries.entity",
    "AlterReplicaLogDirs.results",
    "AlterReplicaLogDirs.results.partitions",
    "AlterShareGroupOffsets.responses",
    "AlterShareGroupOffsets.responses.partitions",
    "AlterUserScramCredentials.results",
    "ConsumerGroupDescribe.groups.members",
    "ConsumerGroupDescribe.groups.members.assignment.topic_partitions",
    "ConsumerGroupDescribe.groups.members.subscribed_topic_names",
    "ConsumerGroupDescribe.groups.members.target_assignment.topic_partitions",
    "ConsumerGroupDescribe.groups.members.assignment.topic_partitions.partitions",
    "ConsumerGroupDescribe.groups.members.target_assignment.topic_partitions.partitions",
    "ConsumerGroupHeartbeat.assignment.topic_partitions",
    "ConsumerGroupHeartbeat.assignment.topic_partitions.partitions",
    "CreatePartitions.results",
    "CreateTopics.topics",
    "CreateTopics.topics.configs",
    "DeleteGroups.results",
    "DeleteRecords.topics",
    "DeleteRecords.topics.partitions",
    "DeleteShareGroupOffsets.responses",
    "DeleteTopics.responses",
    "DescribeClientQuotas.entries",
    "DescribeClientQuotas.entries.entity",
    "DescribeClientQuotas.entries.values",
    "DescribeConfigs.results.configs",
    "DescribeGroups.groups.members",
    "DescribeLogDirs.results.topics",
    "DescribeLogDirs.results.topics.partitions",
    "DescribeProducers.topics.partitions.active_producers",
    "DescribeShareGroupOffsets.groups.topics",
    "DescribeShareGroupOffsets.groups.topics.partitions",
    "DescribeTransactions.transaction_states.topics",
    "DescribeTransactions.transaction_states.topics.partitions",
    "DescribeUserScramCredentials.results",
    "DescribeUserScramCredentials.results.credential_infos",
    "ElectLeaders.replica_election_results",
    "Fetch.responses.partitions.aborted_transactions",
    "JoinGroup.members",
    "ListConfigResources.config_resources",
    "ListGroups.groups",
    "ListOffsets.topics",
    "ListOffsets.topics.partitions",
    "ListTransactions.transaction_states",
    "Metadata.topics",
    "Metadata.topics.partitions",
    "OffsetFetch.groups.topics",
    "OffsetFetch.groups.topics.partitions",
    "OffsetFetch.topics",
    "OffsetFetch.topics.partitions",
    "Produce.responses",
    "Produce.responses.partition_responses",
    "WriteTxnMarkers.markers.topics",
    "WriteTxnMarkers.markers.topics.partitions",
    "ShareAcknowledge.responses",
    "ShareAcknowledge.responses.partitions",
    "ShareFetch.responses",
    "ShareFetch.responses.partitions",
    "ShareGroupDescribe.groups.members",
    "ShareGroupDescribe.groups.members.assignment.topic_partitions",
    "ShareGroupDescribe.groups.members.assignment.topic_partitions.partitions",
    "ShareGroupDescribe.groups.members.subscribed_topic_names",
    "ShareGroupHeartbeat.assignment.topic_partitions",
    "ShareGroupHeartbeat.assignment.topic_partitions.partitions",
    "StreamsGroupDescribe.groups.members",
    "StreamsGroupDescribe.groups.members.assignment.active_tasks",
    "StreamsGroupDescribe.groups.members.assignment.active_tasks.partitions",
    "StreamsGroupDescribe.groups.members.assignment.standby_tasks",
    "StreamsGroupDescribe.groups.members.assignment.standby_tasks.partitions",
    "StreamsGroupDescribe.groups.members.client_tags",
    "StreamsGroupDescribe.groups.members.target_assignment.active_tasks",
    "StreamsGroupDescribe.groups.members.target_assignment.active_tasks.partitions",
    "StreamsGroupDescribe.groups.members.target_assignment.standby_tasks",
    "StreamsGroupDescribe.groups.members.target_assignment.standby_tasks.partitions",
    "StreamsGroupDescribe.groups.members.task_end_offsets",
    "StreamsGroupDescribe.groups.members.task_offsets",
    "StreamsGroupDescribe.groups.topology.subtopologies.repartition_source_topics.topic_configs",
    "StreamsGroupDescribe.groups.topology.subtopologies.state_changelog_topics.topic_configs",
    "StreamsGroupHeartbeat.active_tasks",
    "StreamsGroupHeartbeat.partitions_by_user_endpoint",
    "StreamsGroupHeartbeat.partitions_by_user_endpoint.active_partitions",
    "StreamsGroupHeartbeat.partitions_by_user_endpoint.standby_partitions",
    "StreamsGroupHeartbeat.standby_tasks",
)
"""Lists whose order in Kafka is that of a hash table: compared by their contents."""

UNORDERED_TEXTS: Final = ("StreamsGroupHeartbeat.status.status_detail",)
"""Texts with such lists, each behind a colon: compared with the names in their order."""

SHARED: Final = {
    "DescribeLogDirs.results.topics": "name",
    "DescribeTopicPartitions.topics": "name",
    "ElectLeaders.replica_election_results": "topic",
    "ListConfigResources.config_resources": "resource_name",
    "ListGroups.groups": "group_id",
    "ListTransactions.transaction_states": "transactional_id",
    "Metadata.topics": "name",
}
"""Lists that tell of everything a broker has: rows of other conversations are left out by their names."""

WITHOUT_INTERNAL_TOPICS: Final = ("DescribeLogDirs.results.topics",)
"""Lists from which topics are left out, too, that all conversations write to."""
