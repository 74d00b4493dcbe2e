"""Brokers that are nothing but their requests to a controller."""

from typing import Any

from broker.metadata.features import SUPPORTED_FEATURES
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    BrokerState,
)
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from tests.broker.controller.node import CLUSTER_ID, CONTROLLER, ControllerNode
from tests.broker.metadata.records import directory, uuid

FAR_AHEAD = 1 << 40
"""An offset of the metadata log that is beyond all there is."""


class OtherBroker:
    """A broker that says what a test lets it say."""

    def __init__(self, node: ControllerNode, broker_id: int, *, rack: str | None = None) -> None:
        self.id = broker_id
        self.epoch = -1
        self.incarnation = 0
        self.rack = rack
        self._node = node

    async def register(self, version: int = 4, **changes: Any) -> BrokerRegistrationResponse:
        """Come (back) as a new incarnation, unless ``changes`` say otherwise."""
        self.incarnation += 1
        fields = {
            "broker_id": self.id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": uuid(1000 * self.id + self.incarnation),
            "listeners": [Listener(name="PLAINTEXT", host=f"broker{self.id}", port=9092)],
            "features": [
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            "rack": self.rack,
            "log_dirs": [directory(self.id)],
            **changes,
        }
        request = BrokerRegistrationRequest(**fields)
        answer = await self._node.ask(request, BrokerRegistrationResponse, version, listener=CONTROLLER.name)
        if answer.error_code == ErrorCode.NONE:
            self.epoch = answer.broker_epoch
        found: BrokerRegistrationResponse = answer
        return found

    async def beat(
        self, version: int = 2, *, offset: int = FAR_AHEAD, **wishes: Any
    ) -> BrokerHeartbeatResponse:
        """Tell that it lives."""
        fields = {"broker_epoch": self.epoch, "current_metadata_offset": offset, **wishes}
        request = BrokerHeartbeatRequest(broker_id=self.id, **fields)
        found: BrokerHeartbeatResponse = await self._node.ask(
            request, BrokerHeartbeatResponse, version, listener=CONTROLLER.name
        )
        return found

    async def come(self) -> None:
        """Register and serve."""
        assert (await self.register()).error_code == ErrorCode.NONE
        assert not (await self.beat()).is_fenced

    async def propose(
        self, topic: str, isr: list[int], *, index: int = 0, version: int = 3, **changes: Any
    ) -> AlterPartitionResponse:
        """Propose an in-sync set for a partition, on the ground of what the controller knows."""
        image = self._node.image
        partition = image.topics[topic].partitions[index]
        fields: dict[str, Any] = {
            "partition_index": index,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "leader_recovery_state": int(partition.leader_recovery_state),
        }
        if version >= 3:
            fields["new_isr_with_epochs"] = [
                BrokerState(broker_id=member, broker_epoch=image.brokers[member].epoch) for member in isr
            ]
        else:
            fields["new_isr"] = isr
        fields.update(changes)
        request = AlterPartitionRequest(
            broker_id=self.id,
            broker_epoch=self.epoch,
            topics=[
                AlterPartitionRequestTopicData(
                    topic_id=image.topics[topic].id,
                    partitions=[AlterPartitionRequestPartitionData(**fields)],
                )
            ],
        )
        found: AlterPartitionResponse = await self._node.ask(
            request, AlterPartitionResponse, version, listener=CONTROLLER.name
        )
        return found
