"""StreamsGroupTopologyDescriptionUpdate (93): a member describes its topology (KIP-1331)."""

from protocol.primitives import INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class TopologyDescriptionNode(Struct):
    name: str = wire(STRING, "0+", default="")
    node_type: int = wire(INT8, "0+", default=0)
    source_topics: list[str] = wire(Array(STRING), "0+", factory=list)
    sink_topic: str | None = wire(STRING, "0+", default=None, nullable="0+")
    stores: list[str] = wire(Array(STRING), "0+", factory=list)
    successors: list[str] = wire(Array(STRING), "0+", factory=list)


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    nodes: list[TopologyDescriptionNode] = wire(Array(TopologyDescriptionNode), "0+", factory=list)


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = wire(TopologyDescriptionNode, "0+", factory=TopologyDescriptionNode)
    processor: TopologyDescriptionNode = wire(TopologyDescriptionNode, "0+", factory=TopologyDescriptionNode)


class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology] = wire(
        Array(TopologyDescriptionSubtopology), "0+", factory=list
    )
    global_stores: list[TopologyDescriptionGlobalStore] = wire(
        Array(TopologyDescriptionGlobalStore), "0+", factory=list
    )


class StreamsGroupTopologyDescriptionUpdateRequest(Message, api_key=93, versions="0", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    member_id: str = wire(STRING, "0+", default="")
    topology_epoch: int = wire(INT32, "0+", default=0)
    topology_description: TopologyDescription = wire(TopologyDescription, "0+", factory=TopologyDescription)


class StreamsGroupTopologyDescriptionUpdateResponse(Message, api_key=93, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
