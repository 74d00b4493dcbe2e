"""Why a setting of Kafka's has no effect in this broker: what the last words of ``tables`` stand for."""

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "brokers": "about connections between brokers, which are left as the system makes them",
    "classes": "about Java classes, and there are none here",
    "gathering": "about buffers in which writes are gathered; here each goes out at once",
    "growing": "about files that have their full size from the start; here they grow with what is written",
    "kafka": "of no effect in Kafka 4.4.0 either",
    "metrics": "about metrics and measurements of its own, which this broker does not keep yet",
    "security": "about authentication, encryption or authorization, which this broker does not have yet",
    "threads": "about pools of threads and the queues between them; here one thread serves all that come",
    "tiered": "about tiered storage, which this broker does not have",
    "waiting": "about lists of requests that wait; here a request leaves them when it is answered",
}
"""Each goes on after "is" or "are"."""
