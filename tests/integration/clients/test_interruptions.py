"""Waits that are interrupted or go on side by side: what only one of the two clients can meet."""

from __future__ import annotations

import asyncio
import select
import signal
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.aio import AsyncClient
from libintercom.client import Client
from libintercom.inbound import SOFT_BYTES, ConnectionEnded, Inbound
from libintercom.profile import Profile
from tests.support.desk import incoming, row
from tests.support.scripted_broker import Peer, scripted
from tests.support.waiting import wait_until, wait_until_async

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

PROFILE = Profile(cwd="/work", model="model-a", name="me")
SENDER = row("pi-peer0001", "peer", acceptsAsks=True)


class Mute:
    """A broker's end that lists, acknowledges and never replies; ``has_asked``: a question was acknowledged."""

    def __init__(self) -> None:
        self.has_asked = threading.Event()

    def __call__(self, peer: Peer) -> None:
        peer.register()
        while True:
            heard = peer.hear()
            if not heard:
                return
            if heard["type"] == "list":
                peer.say({"type": "sessions", "requestId": heard["requestId"], "sessions": [SENDER]})
            elif heard["type"] == "send":
                peer.say({"type": "delivered", "messageId": heard["message"]["id"]})
                if heard["message"].get("expectsReply"):
                    self.has_asked.set()


@pytest.fixture(params=["asyncio", "uvloop"])
def turn(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on a fresh loop of each kind that the daemon and its clients may have."""
    if request.param == "asyncio":
        return asyncio.run
    uvloop = pytest.importorskip("uvloop", reason="uvloop is optional: the extra 'speed' is not installed")

    def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(coroutine)

    return run


def test_interrupted_blocking_ask_retires_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the reply is awaited. The signal comes out of poll(2), where the client spends its time."""
    mute = Mute()
    pressed = []

    class InterruptedPoll:
        def __init__(self) -> None:
            self._real = select.poll()

        def register(self, *arguments: Any) -> None:
            self._real.register(*arguments)

        def poll(self, timeout_ms: int) -> list[tuple[int, int]]:
            ready = self._real.poll(0 if mute.has_asked.is_set() else timeout_ms)
            if mute.has_asked.is_set() and not ready and not pressed:
                pressed.append(True)
                raise KeyboardInterrupt
            return ready or self._real.poll(timeout_ms)

    monkeypatch.setattr(
        "libintercom.client.select",
        SimpleNamespace(poll=InterruptedPoll, POLLIN=select.POLLIN, POLLOUT=select.POLLOUT),
    )
    with scripted(mute) as broker:
        with Client(PROFILE, path=broker.path) as client:
            with pytest.raises(KeyboardInterrupt):
                client.ask("peer", "well?")
            assert client.is_connected
            # At once, not with whatever the program says next.
            wait_until(lambda: broker.said[-1]["type"] == "cancel_ask", "the question to be taken back")
            assert client.send("peer", "hello").outcome == "delivered"
        broker.finish()
    kinds = [heard["type"] for heard in broker.said]
    assert kinds == ["register", "list", "send", "cancel_ask", "send", "unregister"]
    assert broker.said[3]["messageId"] == broker.said[2]["message"]["id"]


def test_no_turn_outlasts_a_signal_that_poll_did_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes between the interpreter's last look and poll(2) is heard when the turn ends: within a second."""
    waits: list[int] = []

    class HastyPoll:
        """Notes how long it was to wait, and what nobody answers is over at once."""

        def __init__(self) -> None:
            self._real = select.poll()

        def register(self, *arguments: Any) -> None:
            self._real.register(*arguments)

        def poll(self, timeout_ms: int) -> list[tuple[int, int]]:
            waits.append(timeout_ms)
            if len(waits) > most:
                raise KeyboardInterrupt
            return self._real.poll(min(timeout_ms, 50))

    most = 20
    monkeypatch.setattr(
        "libintercom.client.select", SimpleNamespace(poll=HastyPoll, POLLIN=select.POLLIN, POLLOUT=select.POLLOUT)
    )
    with scripted(Mute()) as broker:
        client = Client(PROFILE, path=broker.path)
        client.connect()
        with pytest.raises(KeyboardInterrupt):
            client.ask("peer", "well?", timeout_s=60)
        most = 2 * most + len(waits)
        with pytest.raises(KeyboardInterrupt):
            list(client.events())
        most += 1_000
        client.disconnect()
        broker.finish()
    assert max(waits) <= 1_001


def test_interruption_at_any_moment_leaves_no_broken_stream() -> None:
    """Real signals at whatever moment they hit: the broker hears whole frames, each message once, and then the end."""
    for _ in range(30):
        mute = Mute()

        def interrupt(_number: int, _stack: object) -> None:
            raise KeyboardInterrupt

        def press(asked: threading.Event = mute.has_asked) -> None:
            assert asked.wait(5)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

        old = signal.signal(signal.SIGUSR1, interrupt)
        presser = threading.Thread(target=press)
        try:
            with scripted(mute) as broker:
                client = Client(PROFILE, path=broker.path)
                client.connect()
                presser.start()
                with pytest.raises(KeyboardInterrupt):
                    client.ask("peer", "well?")
                client.disconnect()
                broker.finish()
        finally:
            presser.join()
            signal.signal(signal.SIGUSR1, old)
        kinds = [heard["type"] for heard in broker.said]
        # Either the question was taken back, or the connection it belonged to is gone.
        assert kinds in (["register", "list", "send", "cancel_ask", "unregister"], ["register", "list", "send"])


def test_cancelled_task_retires_its_question(turn: Any) -> None:
    mute = Mute()

    async def main(path: str) -> None:
        async with AsyncClient(PROFILE, path=path) as client:
            accepted = asyncio.Event()
            asking = asyncio.create_task(client.ask("peer", "well?", on_outcome=lambda _outcome: accepted.set()))
            await accepted.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert (await client.send("peer", "hello")).outcome == "delivered"

    with scripted(mute) as broker:
        turn(main(broker.path))
        broker.finish()
    kinds = [heard["type"] for heard in broker.said]
    assert kinds == ["register", "list", "send", "cancel_ask", "send", "unregister"]


def test_ask_cancelled_by_its_id_ends_with_a_result(turn: Any) -> None:
    async def main(path: str) -> None:
        async with AsyncClient(PROFILE, path=path) as client:
            accepted = asyncio.Event()
            asking = asyncio.create_task(
                client.ask("peer", "well?", message_id="q1", on_outcome=lambda _outcome: accepted.set())
            )
            await accepted.wait()
            second = await client.ask("peer", "and?")
            assert second.outcome.code == "already_waiting"
            await client.cancel_ask("q1")
            answered = await asking
            assert (answered.outcome.outcome, answered.ended_by) == ("delivered", "cancelled")

    with scripted(Mute()) as broker:
        turn(main(broker.path))
        broker.finish()
    assert broker.said[-2] == {"type": "cancel_ask", "messageId": "q1"}


def test_calls_and_events_go_on_side_by_side(turn: Any) -> None:
    def script(peer: Peer) -> None:
        """Acknowledge in the opposite order, with messages between."""
        peer.register()
        heard = [peer.hear()["message"]["id"] for _ in range(20)]
        for message_id in reversed(heard):
            peer.say(incoming(SENDER, f"m-{message_id}"), {"type": "delivered", "messageId": message_id})
        while peer.hear():
            pass

    async def main(path: str) -> None:
        async with AsyncClient(PROFILE, path=path) as client:

            async def consume() -> list[str]:
                seen = []
                async for event in client.events():
                    assert isinstance(event, Inbound)
                    seen.append(event.message.id)
                    if len(seen) == 20:
                        break
                return seen

            consumer = asyncio.create_task(consume())
            sends = [client.send("peer", str(number), message_id=f"s{number}") for number in range(20)]
            outcomes = await asyncio.gather(*sends)
            assert [outcome.outcome for outcome in outcomes] == ["delivered"] * 20
            assert [outcome.message_id for outcome in outcomes] == [f"s{number}" for number in range(20)]
            assert await consumer == [f"m-s{number}" for number in reversed(range(20))]

    with scripted(script) as broker:
        turn(main(broker.path))
        broker.finish()


def test_large_messages_pass_both_ways_at_once(turn: Any) -> None:
    """Frames far beyond the kernel's buffers: writing waits for room while reading goes on."""
    size, count = 900_000, 8

    def script(peer: Peer) -> None:
        peer.register()
        for _ in range(count):
            message = peer.hear()["message"]
            peer.say(incoming(SENDER, f"m-{message['id']}", message["content"]["text"]))
            peer.say({"type": "delivered", "messageId": message["id"]})
        while peer.hear():
            pass

    async def main(path: str) -> None:
        async with AsyncClient(PROFILE, path=path) as client:
            sends = [client.send("peer", str(number) * size, message_id=f"s{number}") for number in range(count)]
            outcomes = await asyncio.gather(*sends)
            assert [outcome.outcome for outcome in outcomes] == ["delivered"] * count
            got = [len(event.message.content.text) async for event in client.events(0.2) if isinstance(event, Inbound)]
            assert got == [size] * count

    with scripted(script) as broker:
        turn(main(broker.path))
        broker.finish()


def test_reading_pauses_while_nobody_takes_events_and_goes_on_when_somebody_does(turn: Any) -> None:
    """More than the bound arrives while the program looks away: the rest waits with the broker, and none is lost."""
    size, count = 100_000, 3 * SOFT_BYTES // 100_000

    def script(peer: Peer) -> None:
        peer.register()
        for number in range(count):
            peer.say(incoming(SENDER, f"m{number}", "x" * size))
        while peer.hear():
            pass

    async def main(path: str) -> None:
        async with AsyncClient(PROFILE, path=path) as client:
            exchange = client._exchange
            await wait_until_async(lambda: not exchange.wants_input, "reading to pause")
            held = len(exchange.mailroom)
            # Many turns of the loop later nothing more was read.
            for _ in range(50):
                await asyncio.get_running_loop().run_in_executor(None, int)
            assert len(exchange.mailroom) == held <= SOFT_BYTES // size + 2
            got = []
            async for event in client.events(2.0):
                assert isinstance(event, Inbound)
                got.append(event.message.id)
                if len(got) == count:
                    break
            assert got == [f"m{number}" for number in range(count)]

    with scripted(script) as broker:
        turn(main(broker.path))
        broker.finish()


def test_waiting_consumer_hears_of_the_end(turn: Any) -> None:
    go = threading.Event()

    def script(peer: Peer) -> None:
        peer.register()
        assert go.wait(5)

    async def main(path: str) -> None:
        client = AsyncClient(PROFILE, path=path)
        await client.connect()
        consumer = asyncio.create_task(anext(client.events()))  # type: ignore[arg-type]
        await wait_until_async(lambda: client._connection and client._connection._arrival, "the consumer to wait")
        go.set()
        assert isinstance(await asyncio.wait_for(consumer, 5), ConnectionEnded)
        await client.disconnect()

    with scripted(script) as broker:
        turn(main(broker.path))


def test_connecting_never_blocks_the_loop(turn: Any) -> None:
    """While a broker's end does not answer a registration, other tasks go on."""
    go = threading.Event()

    def script(peer: Peer) -> None:
        assert go.wait(5)
        peer.register()
        while peer.hear():
            pass

    async def main(path: str) -> None:
        client = AsyncClient(PROFILE, path=path)
        connecting = asyncio.create_task(client.connect())
        await asyncio.get_running_loop().run_in_executor(None, go.set)
        await connecting
        await client.disconnect()

    with scripted(script) as broker:
        turn(main(broker.path))
        broker.finish()
