"""One application of Quix Streams: ``python application.py SETTINGS``, which are JSON.

It runs in the environment of Quix Streams, which has nothing of ours, until it is told to terminate.
"""

import json
import sys
import time
from datetime import timedelta
from typing import Any, Final

from quixstreams import Application, State
from quixstreams.dataframe import StreamingDataFrame

WINDOW: Final = timedelta(seconds=10)


def count(value: str, state: State) -> int:
    """How often the key has come, with this value; keeps it."""
    times = int(state.get("times", 0)) + 1
    state.set("times", times)
    return times


def counting(stream: StreamingDataFrame) -> StreamingDataFrame:
    return stream.apply(count, stateful=True)


def regrouping(stream: StreamingDataFrame) -> StreamingDataFrame:
    """Counts values, by way of a repartition topic."""
    by_value = stream.group_by(
        lambda value: value, name="value", value_deserializer="str", value_serializer="str"
    )
    return by_value.apply(count, stateful=True)


def windows(stream: StreamingDataFrame) -> StreamingDataFrame:
    """Counts keys in windows that are over."""
    counted = stream.tumbling_window(WINDOW).count().final()
    return counted.apply(lambda window: window["value"])


def hanging(stream: StreamingDataFrame) -> StreamingDataFrame:
    """Counts keys, and hangs at the fourth of a key, before that is told."""

    def hang(times: int) -> None:
        if times == 4:
            time.sleep(3600)

    return counting(stream).update(hang)


TOPOLOGIES: Final = {
    "counting": counting,
    "regrouping": regrouping,
    "windows": windows,
    "hanging": hanging,
}


def main(told: dict[str, Any]) -> None:
    application = Application(
        broker_address=told["address"],
        consumer_group=told["group"],
        auto_offset_reset="earliest",
        commit_interval=told["commit_interval_seconds"],
        consumer_poll_timeout=0.1,
        consumer_extra_config={
            "session.timeout.ms": 3000,
            "heartbeat.interval.ms": 300,
            "fetch.wait.max.ms": 100,
        },
        producer_extra_config=told["producer"],
        state_dir=told["folder"],
        processing_guarantee=told["guarantee"],
        loglevel="WARNING",
    )
    source = application.topic(told["in"], key_deserializer="str", value_deserializer="str")
    target = application.topic(told["out"], key_serializer="str", value_serializer="json")
    TOPOLOGIES[told["topology"]](application.dataframe(source)).to_topic(target)
    application.run()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
