"""An ssh server inside the test: the real protocol and a real key login, and a script for each login's misbehaviour.

Owns one listening server in a thread with its own event loop. The user name of a login is the device that it stands
for. Does not own what the devices are (``fleet``).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import asyncssh

from tests.support.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    Script = Callable[["Login"], Awaitable[int]]

_READ_BYTES = 65_536


class Cut(Exception):
    """The connection ends without a word at this moment."""


class Login:
    """One remote command that was asked for: what a script may do with it.

    ``environment`` is the device's own. ``run`` gives the honest behaviour, with gates on both directions.
    """

    def __init__(self, process: asyncssh.SSHServerProcess[bytes], environment: dict[str, str]) -> None:
        self.process, self.environment = process, environment

    @property
    def command(self) -> str:
        return self.process.command or ""

    async def say(self, text: bytes | str) -> None:
        self.process.stdout.write(text.encode() if isinstance(text, str) else text)
        await self.process.stdout.drain()

    def complain(self, text: str) -> None:
        self.process.stderr.write(text.encode())

    async def hear(self) -> bytes:
        """The request's line; a part of it at the end of the input."""
        received = b""
        while not received.endswith(b"\n"):
            chunk = await self.process.stdin.read(_READ_BYTES)
            if not chunk:
                break
            received += chunk
        return received

    async def stall(self) -> None:
        """Nothing more happens, until the other end has enough."""
        await self.process.wait_closed()
        raise Cut

    async def run(
        self,
        *,
        inward: Callable[[bytes], Awaitable[bytes]] | None = None,
        outward: Callable[[bytes], Awaitable[bytes]] | None = None,
        shell: str = "sh",
        before: str = "",
    ) -> int:
        """Run the command as sshd would; each gate takes a chunk and returns what passes, stalls, or raises Cut."""
        child = await asyncio.create_subprocess_exec(
            shell,
            "-c",
            before + self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment,
            cwd=self.environment["HOME"],
            start_new_session=True,
        )
        feeding = asyncio.create_task(_pump_in(self.process, child, inward))
        pumps = [
            asyncio.create_task(_pump_out(child.stdout, self.process.stdout, outward)),
            asyncio.create_task(_pump_out(child.stderr, self.process.stderr, None)),
        ]
        try:
            await _pump_all(feeding, pumps)
            return await child.wait()
        finally:
            for pump in (feeding, *pumps):
                pump.cancel()
            await _let_go(child)


async def _pump_in(
    process: asyncssh.SSHServerProcess[bytes],
    child: asyncio.subprocess.Process,
    gate: Callable[[bytes], Awaitable[bytes]] | None,
) -> None:
    assert child.stdin is not None
    with contextlib.suppress(ConnectionError, asyncssh.Error):
        while chunk := await process.stdin.read(_READ_BYTES):
            child.stdin.write(chunk if gate is None else await gate(chunk))
            await child.stdin.drain()
    child.stdin.close()


async def _pump_all(feeding: asyncio.Task[None], pumps: list[asyncio.Task[None]]) -> None:
    """Until the output has passed; at once when a gate cuts."""
    waiting: set[asyncio.Task[None]] = {feeding, *pumps}
    while not all(pump.done() for pump in pumps):
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


async def _pump_out(source: Any, sink: Any, gate: Callable[[bytes], Awaitable[bytes]] | None) -> None:
    while chunk := await source.read(_READ_BYTES):
        sink.write(chunk if gate is None else await gate(chunk))
        await sink.drain()


async def _let_go(child: asyncio.subprocess.Process) -> None:
    """What sshd does at the end of a connection: the command's streams end, the command is left to itself."""
    transport: Any = child._transport  # type: ignore[attr-defined]  # there is no public way to close its read ends
    for descriptor in (0, 1, 2):
        stream = transport.get_pipe_transport(descriptor)
        if stream is not None:
            stream.close()
    # It leaves by itself; the event loop would otherwise call its end a leak.
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(child.wait(), DEADLINE_S)


async def honest(login: Login) -> int:
    """What a device does that works."""
    return await login.run()


class _Server(asyncssh.SSHServer):
    def __init__(self, owner: SshServer) -> None:
        self._owner = owner

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._owner.connections += 1
        if self._owner.is_refusing:
            conn.abort()

    def begin_auth(self, username: str) -> bool:
        return True


class SshServer:
    """A server on a port of the loopback interface. ``scripts`` are by user name; without one a device is honest."""

    def __init__(self, authorized_keys: str, environment_of: Callable[[str], dict[str, str]]) -> None:
        self.scripts: dict[str, Script] = {}
        self.connections, self.is_refusing = 0, False
        self.commands: list[str] = []
        self.failures: list[str] = []
        self.port = 0
        self._authorized_keys, self._environment_of = authorized_keys, environment_of
        self._loop = asyncio.new_event_loop()
        self._is_up = threading.Event()
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._is_up.wait(DEADLINE_S), "the ssh server did not start"

    def close(self) -> None:
        over = self._over
        if over is not None:
            self._loop.call_soon_threadsafe(over.set)
        self._thread.join(DEADLINE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
            self._loop.run_until_complete(_cancel_all())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._over = asyncio.Event()
        async with self._listening() as port:
            self.port = port
            self._is_up.set()
            await self._over.wait()

    @contextlib.asynccontextmanager
    async def _listening(self) -> AsyncIterator[int]:
        server = await asyncssh.create_server(
            lambda: _Server(self),
            "127.0.0.1",
            0,
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            authorized_client_keys=asyncssh.import_authorized_keys(self._authorized_keys),
            process_factory=self._take,
            encoding=None,
            line_editor=False,
            keepalive_interval=0,
        )
        try:
            yield server.get_port()
        finally:
            server.close()

    async def _take(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        device = process.get_extra_info("username")
        self.commands.append(process.command or "")
        login = Login(process, self._environment_of(device))
        try:
            status = await self.scripts.get(device, honest)(login)
        except Cut:
            process.channel.get_connection().abort()
            return
        except (ConnectionError, asyncssh.Error):
            return
        except AssertionError as failure:
            self.failures.append(str(failure))
            status = 99
        with contextlib.suppress(ConnectionError, asyncssh.Error):
            process.exit(status)


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextlib.contextmanager
def ssh_server(authorized_keys: str, environment_of: Callable[[str], dict[str, str]]) -> Iterator[SshServer]:
    """A server for the time of a test."""
    server = SshServer(authorized_keys, environment_of)
    try:
        yield server
    finally:
        server.close()
