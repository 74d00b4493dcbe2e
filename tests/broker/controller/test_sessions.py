"""Who is alive, who is not, and who has come how far."""

import pytest

from broker.controller.sessions import BrokerSessions, Incarnation
from broker.metadata.image import MetadataImage
from tests.broker.metadata.records import after, broker, image_of

OWN = 1
IMAGE = image_of(broker(OWN), broker(2), broker(3), broker(4, fenced=True))


@pytest.fixture
def sessions() -> BrokerSessions:
    return BrokerSessions(9000, OWN)


class TestSessions:
    def test_it_lasts_as_long_as_the_timeout_says(self, sessions: BrokerSessions) -> None:
        sessions.heard(2, 100, 1000)
        for now_ms, lasts in ((1000, True), (10_000, True), (10_001, False)):
            assert sessions.is_alive(IMAGE.brokers[2], now_ms) is lasts

    def test_a_registration_alone_begins_none(self, sessions: BrokerSessions) -> None:
        sessions.registered(2, 100)
        assert not sessions.is_alive(IMAGE.brokers[2], 0)
        assert sessions.end_ms() is None

    def test_it_belongs_to_one_incarnation(self, sessions: BrokerSessions) -> None:
        sessions.heard(2, 99, 0)
        assert not sessions.is_alive(IMAGE.brokers[2], 0)

    def test_the_controller_s_own_broker_lives_as_long_as_the_controller(
        self, sessions: BrokerSessions
    ) -> None:
        sessions.begin(IMAGE, 0)
        assert sessions.is_alive(IMAGE.brokers[OWN], 1 << 40)
        stale = []
        while (found := sessions.find_stale(1 << 40)) is not None:
            stale.append(found.broker_id)
            sessions.end(*found)
        assert stale == [2, 3]

    def test_a_controller_without_a_broker_hears_of_all(self) -> None:
        sessions = BrokerSessions(9000, None)
        sessions.heard(OWN, 100, 0)
        assert sessions.find_stale(9001) == Incarnation(OWN, 100)

    def test_a_new_controller_gives_everybody_a_whole_session(self, sessions: BrokerSessions) -> None:
        sessions.heard(2, 100, 0)
        sessions.begin(IMAGE, 8000)
        assert sessions.find_stale(17_000) is None
        assert sessions.end_ms() == 17_000
        assert not sessions.is_alive(IMAGE.brokers[4], 8000)

    def test_who_was_let_go_is_missed_until_it_is_fenced(self, sessions: BrokerSessions) -> None:
        sessions.heard(2, 100, 0)
        sessions.let_go(2, 100)
        known = IMAGE.brokers[2]
        assert sessions.is_alive(known, 0)
        assert not sessions.is_alive(known._replace(fenced=True), 0)
        assert sessions.find_stale(9001) == Incarnation(2, 100)
        sessions.heard(2, 100, 1)
        assert sessions.is_alive(known._replace(fenced=True), 1)

    def test_the_stale_are_found_one_at_a_time(self, sessions: BrokerSessions) -> None:
        sessions.heard(2, 100, 0)
        sessions.heard(3, 100, 1)
        sessions.heard(2, 100, 2)
        assert sessions.find_stale(9001) is None
        assert sessions.find_stale(9002) == Incarnation(3, 100)
        sessions.end(3, 100)
        assert sessions.find_stale(9002) is None
        assert sessions.find_stale(9003) == Incarnation(2, 100)
        sessions.end(2, 100)
        assert sessions.end_ms() is None

    def test_a_pause_is_added_and_makes_nobody_heard_in_the_future(self, sessions: BrokerSessions) -> None:
        sessions.heard(2, 100, 0)
        sessions.heard(3, 100, 8000)
        sessions.excuse(5000, 10_000)
        assert sessions.end_ms() == 14_000
        sessions.end(2, 100)
        assert sessions.end_ms() == 19_000


class TestProgress:
    def test_what_must_have_been_read(self, sessions: BrokerSessions) -> None:
        assert sessions.registration_offset(IMAGE.brokers[2]) == 100
        sessions.registered(2, 107)
        assert sessions.registration_offset(IMAGE.brokers[2]) == 107

    def test_the_lowest_offset_of_those_that_may_lead(self, sessions: BrokerSessions) -> None:
        assert sessions.lowest_active_offset(IMAGE) == -1
        sessions.reached(2, 205)
        sessions.reached(3, 203)
        sessions.reached(4, 10)
        assert sessions.lowest_active_offset(IMAGE) == 203
        assert sessions.lowest_active_offset(without(3)) == 205
        assert sessions.lowest_active_offset(without(2, 3)) is None

    def test_a_new_registration_begins_anew(self, sessions: BrokerSessions) -> None:
        sessions.reached(2, 205)
        sessions.reached(3, 205)
        sessions.begin_shutdown(2, 205)
        sessions.registered(2, 300)
        assert sessions.lowest_active_offset(IMAGE) == -1
        assert sessions.shutdown_offset(2) is None

    def test_a_shutdown_begins_once(self, sessions: BrokerSessions) -> None:
        sessions.begin_shutdown(2, 200)
        sessions.begin_shutdown(2, 210)
        assert sessions.shutdown_offset(2) == 200
        sessions.end_shutdown(2)
        assert sessions.shutdown_offset(2) is None


def without(*fenced: int) -> MetadataImage:
    return after(IMAGE, [broker(number, fenced=True) for number in fenced])
