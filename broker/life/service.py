"""A broker among others: it registers, is heard of as long as it lives, and asks for leave in the end."""

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from broker.errors import ErrorCode, KafkaError, StartupError
from broker.life.heartbeat import BrokerState, Lifecycle
from broker.metadata.features import writes_cordoned_directories

if TYPE_CHECKING:
    from broker.controller.start import Node
    from broker.metadata.image import MetadataImage
    from broker.metadata.replay import MetadataChanges
    from broker.services import Services
    from protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
    from protocol.messages.broker_registration import BrokerRegistrationResponse

LEAVE_SECONDS_MAX: Final = 300.0
"""How long a stopping broker waits while the controller has no leave for it yet, as in Kafka."""

LINGER_SECONDS: Final = 0.5
"""How long a node stays that is the controller of others, after its broker could go: it may be that all are
told to stop, one after the other."""


class BrokerLife:
    """Tells the controller of this broker, and the broker what the controller thinks of it.

    A broker whose own node is the controller is registered and unfenced by its start, and nobody needs to
    hear of it while that stays so.  All others register and send heartbeats over the channel.
    """

    def __init__(self, services: "Services", node: "Node") -> None:
        self._services = services
        self._node = node
        self._changed = trio.Event()
        self._heard_at = trio.current_time()
        self._was_seen = False
        """Whether the cluster's metadata have named this broker as it registered last."""
        self._is_left_out = False
        """Whether they did, and do not any more: it was unregistered, and its id may be another process's."""
        self._refusal: KafkaError | None = None
        self.lifecycle = Lifecycle(heartbeat_interval_ms=services.config.get("broker.heartbeat.interval.ms"))
        own = services.image.brokers.get(services.node_id)
        if services.quorum.is_leader and own is not None:
            self.lifecycle.adopt(own.epoch)
            self._was_seen = True
            self.incarnation_id = own.incarnation_id
            """Of this run of the broker, whenever it registers."""
        else:
            self.incarnation_id = services.identifiers.uuid()
        services.metadata.on_publish(self._follow)
        services.quorum.on_leader_change(self._wake)

    @property
    def broker_epoch(self) -> int:
        """Of the registration that counts; -1 before there is one."""
        return self.lifecycle.broker_epoch

    @property
    def state(self) -> BrokerState:
        return self.lifecycle.state

    @property
    def serves(self) -> bool:
        """Whether the broker has been let in to the cluster, and its own metadata say so."""
        return self.state is BrokerState.RUNNING and self._is_known_as_unfenced

    # What the broker waits for

    async def wait_caught_up(self) -> None:
        """Wait until this broker is registered, and its metadata say so."""
        await self._wait_until(lambda: self.state is not BrokerState.STARTING)

    async def serve(self) -> None:
        """The broker can serve: wait until it may, and knows that it may, or has to stop."""
        if self.serves:
            return
        self.lifecycle.ready()
        self._wake()
        await self._wait_until(lambda: self.serves or self.state is BrokerState.SHUTTING_DOWN)

    async def leave(self) -> None:
        """Give away what this broker leads, and wait until the controller lets it go.

        Not if it is alone, or ``controlled.shutdown.enable`` is false.  A controller that is not there for a
        whole session does not keep it: by then it counts as gone anyway.
        """
        services = self._services
        is_wanted = services.config.get("controlled.shutdown.enable") and not (
            services.quorum.is_leader and self._is_alone
        )
        if not is_wanted:
            self.lifecycle.end()
            self._wake()
            return
        session_seconds: float = services.config.get("broker.session.timeout.ms") / 1000
        self._heard_at = started_at = trio.current_time()
        self.lifecycle.leave()
        self._wake()
        while self.state is not BrokerState.SHUTTING_DOWN:
            if self._is_left_out:  # it leads nothing, and nobody has leave for it
                self.lifecycle.end()
                self._wake()
                break
            give_up_at = min(self._heard_at + session_seconds, started_at + LEAVE_SECONDS_MAX)
            if trio.current_time() >= give_up_at:
                services.log.warn("the broker goes without leave: its controller has none for it")
                self.lifecycle.end()
                self._wake()
                return
            changed = self._changed
            with trio.move_on_at(give_up_at):
                await changed.wait()
        if services.quorum.is_leader:  # nobody else could let the others go
            with trio.move_on_after(LINGER_SECONDS):
                await self._wait_until(lambda: self._others_are_leaving)
            with trio.move_on_after(session_seconds):
                await self._wait_until(lambda: not self._others_are_leaving)

    # At work

    async def run(self) -> None:
        """Ask what the lifecycle wants to know, until it is over.

        Raises StartupError if the broker cannot register in ``initial.broker.registration.timeout.ms``.
        """
        services = self._services
        limit_ms: int = services.config.get("initial.broker.registration.timeout.ms")
        with trio.CancelScope(deadline=trio.current_time() + limit_ms / 1000) as initial:
            if self.lifecycle.is_registered:
                initial.deadline = math.inf
            while await self._wait_for_turn():
                self.lifecycle.asks()
                try:
                    if self.lifecycle.is_registered:
                        await self._send_heartbeat()
                    else:
                        await self._register()
                except KafkaError as error:
                    self._failed(error)
                if self.lifecycle.is_registered:
                    initial.deadline = math.inf
                self._wake()
        if initial.cancelled_caught:
            raise StartupError(
                f"the broker could not register with a controller in {limit_ms} ms: "
                f"{self._refusal or 'none has answered'}"
            )

    async def _register(self) -> None:
        from broker.life.registration import registration_request

        services, lifecycle = self._services, self.lifecycle
        request = registration_request(services, self._node, self.incarnation_id)
        answer: BrokerRegistrationResponse = await services.channel.ask(
            request, timeout_seconds=self._patience
        )
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        lifecycle.registered(answer.broker_epoch)
        self._was_seen = self._is_known  # the metadata may be here before the answer
        services.log.info(f"registered with broker epoch {answer.broker_epoch}")

    async def _send_heartbeat(self) -> None:
        from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

        services, lifecycle = self._services, self.lifecycle
        request = BrokerHeartbeatRequest(
            broker_id=services.node_id,
            broker_epoch=lifecycle.broker_epoch,
            current_metadata_offset=services.image.offset,
            want_fence=lifecycle.wants_fence,
            want_shut_down=lifecycle.wants_shut_down,
            cordoned_log_dirs=self._cordoned,
        )
        answer: BrokerHeartbeatResponse = await services.channel.ask(request, timeout_seconds=self._patience)
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        self._heard_at = trio.current_time()
        if lifecycle.state is BrokerState.RUNNING and answer.is_fenced != lifecycle.is_fenced:
            if answer.is_fenced:
                services.log.warn("the controller has fenced this broker")
            else:
                services.log.info("the controller has unfenced this broker again")
        lifecycle.answered(answer, self._now_ms)

    def _failed(self, error: KafkaError) -> None:
        lifecycle = self.lifecycle
        self._refusal = error
        what = "heartbeat" if lifecycle.is_registered else "registration"
        line = f"the controller does not take this broker's {what}: {error}"
        if error.code is ErrorCode.REQUEST_TIMED_OUT and self._services.channel.is_away:
            self._services.log.debug(line)  # one cause, one warning
        else:
            self._services.log.warn_seldom(line)
        lifecycle.failed(self._now_ms)

    @property
    def _cordoned(self) -> list[bytes] | None:
        """The directories that take no new replicas; None while that is not known, or cannot be told."""
        services = self._services
        partitions = getattr(services, "partitions", None)  # they are opened in the course of this life
        if partitions is None or not writes_cordoned_directories(services.image.metadata_version):
            return None
        return sorted(partitions.places.cordoned)

    @property
    def _patience(self) -> float:
        """How long one question may take: as long as until the next heartbeat, as in Kafka."""
        seconds: float = self._services.config.get("broker.heartbeat.interval.ms") / 1000
        return seconds

    @property
    def _now_ms(self) -> float:
        return trio.current_time() * 1000

    @property
    def _is_alone(self) -> bool:
        brokers = self._services.image.brokers
        return not any(broker.is_active for broker in brokers.values() if broker.id != self._services.node_id)

    @property
    def _others_are_leaving(self) -> bool:
        brokers = self._services.image.brokers.values()
        others = (broker for broker in brokers if broker.id != self._services.node_id)
        return any(broker.in_controlled_shutdown and not broker.fenced for broker in others)

    @property
    def _is_known_as_unfenced(self) -> bool:
        return self._is_known and not self._services.image.brokers[self._services.node_id].fenced

    @property
    def _is_known(self) -> bool:
        """Whether the metadata name this process's registration."""
        own = self._services.image.brokers.get(self._services.node_id)
        return own is not None and own.epoch == self.lifecycle.broker_epoch

    @property
    def _rests(self) -> bool:
        """Whether there is nothing to tell a controller of this node, since the broker is not fenced."""
        services, lifecycle = self._services, self.lifecycle
        if not (
            services.quorum.is_leader and lifecycle.is_registered and lifecycle.state is BrokerState.RUNNING
        ):
            return False
        own = services.image.brokers.get(services.node_id)
        return own is None or not own.fenced  # unregistered by an operator, it stays so

    async def _wait_for_turn(self) -> bool:
        """Wait until the controller is to be asked something; False once it is not any more."""
        while self.state is not BrokerState.SHUTTING_DOWN:
            changed = self._changed
            if self._rests:
                await changed.wait()
                continue
            wait_ms = self.lifecycle.due_ms - self._now_ms
            if wait_ms <= 0:
                return True
            with trio.move_on_after(wait_ms / 1000):
                await changed.wait()
        return False

    async def _wait_until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self._changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def _follow(self, image: "MetadataImage", changes: "MetadataChanges") -> None:
        """Register again when the cluster does not rightly know this broker.

        One that an operator has unregistered while it runs stays out, as Kafka's does: its heartbeats are
        refused from then on.
        """
        lifecycle = self.lifecycle
        own = image.brokers.get(self._services.node_id)
        is_known = self._is_known
        self._was_seen |= is_known
        was_left_out = self._is_left_out
        self._is_left_out = self._was_seen and lifecycle.is_registered and not is_known
        self._wake()
        if lifecycle.state is not BrokerState.RUNNING:
            return
        if self._is_left_out and not was_left_out:
            what = "this broker has been unregistered while it runs"
            if own is not None:
                what = f"another process has registered as broker {own.id}, whose session was over"
            self._services.log.warn(f"{what}: no client is sent here until it is started again")
        lacks_directories = is_known and own is not None and not own.directories
        if lacks_directories and lifecycle.is_registered and not self._services.quorum.is_leader:
            self._services.log.warn("the cluster does not know this broker as it is: it registers again")
            lifecycle.register_again()
            self._wake()


@asynccontextmanager
async def open_life(services: "Services", node: "Node") -> AsyncGenerator[BrokerLife]:
    """The broker's life at work."""
    async with trio.open_nursery() as nursery:
        life = BrokerLife(services, node)
        nursery.start_soon(life.run)
        yield life
        nursery.cancel_scope.cancel()
