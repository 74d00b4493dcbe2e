"""A client that Apache Kafka 4.4 does not serve any more fares with us as it does there."""

import json

import pytest

from compat.broker_process import BrokerProcess
from compat.java_client.refused import RECORDED, fate
from compat.scenarios.missing import ClientMissing


@pytest.mark.slow
def test_a_client_that_is_too_old_is_refused_what_kafka_refuses_it(ottla: BrokerProcess) -> None:
    try:
        found = fate(ottla.address)
    except ClientMissing as missing:
        pytest.skip(str(missing))
    assert found == json.loads(RECORDED.read_text())
