"""Starting the real broker: one for many starters, a clean one, and every way in which a candidate goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from libintercom.endpoint import dial
from libintercom.errors import NotStarted, UncertainOwner, UnsafeDirectory
from libintercom.ownership.directory import open_directory
from libintercom.ownership.locks import try_lock
from libintercom.ownership.readings import read_stat
from libintercom.ownership.records import read_owner
from libintercom.starting import ensure_broker
from tests.support.executables import ROOT, write_executable
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from libintercom.paths import Places

STARTERS = 20
CRASH = "if not os.path.exists({mark!r}):\n    open({mark!r}, 'w').close()\n    {crash}"


@pytest.fixture
def started(places: Places) -> Iterator[Places]:
    """The places; whatever broker serves them at the end of the test is ended."""
    yield places
    pid = owner_of(places)
    if pid and b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes():
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: has_ended(pid), f"broker {pid} to leave")


@pytest.fixture
def configure(places: Places, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Make the configured executable one that goes wrong first; its path."""

    def write(before: str = "", options: str = "") -> str:
        path = write_executable(Path(f"{places.runtime_dir}.exe"), before=before, options=options)
        monkeypatch.setenv("PI_INTERCOM_EXECUTABLE", str(path))
        return str(path)

    return write


def owner_of(places: Places) -> int:
    """The pid on record, 0 without a living one."""
    try:
        pid = read_owner(Path(places.record).read_bytes()).pid
    except FileNotFoundError:
        return 0
    return pid if pid and not has_ended(pid) else 0


def has_ended(pid: int) -> bool:
    """Gone, or waiting for init to collect it."""
    return read_stat(pid)[0] in (None, "Z")


def serving_lines(places: Places) -> list[dict[str, object]]:
    records = [json.loads(line) for line in Path(places.log).read_text().splitlines() if line.startswith("{")]
    return [record for record in records if record["what"] == "serving"]


def member(pid: int, name: str) -> str:
    """One line of /proc/<pid>/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split("\t", 1)[1] for line in lines if line.startswith(f"{name}:"))


def test_the_first_one_starts_it_and_the_next_one_finds_it(started: Places) -> None:
    ensure_broker(started)
    pid = owner_of(started)
    dial(started.socket).close()
    before = time.monotonic()
    ensure_broker(started)
    assert time.monotonic() - before < 0.5
    assert owner_of(started) == pid


def test_many_starters_end_in_one_broker(started: Places) -> None:
    def start(_number: int) -> int:
        ensure_broker(started)
        dial(started.socket).close()
        return owner_of(started)

    with ThreadPoolExecutor(STARTERS) as pool:
        owners = set(pool.map(start, range(STARTERS)))
    assert len(owners) == 1
    wait_until(lambda: serving_lines(started), "the broker's log")
    assert [line["pid"] for line in serving_lines(started)] == list(owners)


def test_candidates_launched_by_hand_end_in_one_broker(started: Places) -> None:
    """Without any starter's gate: their own locks keep them apart, and the losers end without a failure."""
    environ = {**os.environ, "PI_INTERCOM_RUNTIME_DIR": started.runtime_dir}
    command = [os.path.join(os.path.dirname(sys.executable), "intercomd"), "serve"]
    candidates = [
        subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    wait_until(lambda: sum(one.poll() is None for one in candidates) <= 1, "the losers to end")
    wait_until(lambda: owner_of(started), "the winner to serve")
    winners = [one for one in candidates if one.pid == owner_of(started)]
    assert len(winners) == 1
    winners[0].terminate()
    for one in candidates:
        said = one.communicate()[1]
        assert one is winners[0] or (one.returncode, "intercomd: already: " in said) == (0, True), said


def test_brokers_that_end_at_once_are_followed_by_others(started: Places, configure: Callable[..., str]) -> None:
    """Idle exits and starts overlap all the time; every starter is answered."""
    configure(options="--idle-exit-s 0.05")

    def start(_number: int) -> None:
        for _round in range(3):
            ensure_broker(started)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(start, range(6)))  # raises what any starter raised
    wait_until(lambda: not os.path.exists(started.socket), "the last broker to leave")


def test_a_killed_broker_is_replaced(started: Places) -> None:
    ensure_broker(started)
    first = owner_of(started)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: has_ended(first), "the broker to end")
    ensure_broker(started)
    assert owner_of(started) not in (0, first)


def test_code_around_a_client_never_reaches_the_broker(
    started: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    for name in ("msgspec", "intercomd", "structlog", "libintercom"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})")
    for name in ("sitecustomize.py", "usercustomize.py", "json.py"):
        (tmp_path / name).write_text(f"open({str(mark)!r}, 'a').write({name!r})")
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "evil.so"))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "json.py"))
    monkeypatch.setenv("SOME_API_KEY", "secret")
    ensure_broker(started)
    pid = owner_of(started)
    environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    names = {entry.split(b"=")[0].decode() for entry in environ if entry}
    assert names == {
        "LANG",
        "PATH",
        "MALLOC_MMAP_THRESHOLD_",
        "MALLOC_TRIM_THRESHOLD_",
        "MALLOC_TOP_PAD_",
        "PI_INTERCOM_RUNTIME_DIR",
    }
    assert not mark.exists()
    assert os.readlink(f"/proc/{pid}/cwd") == "/"


RESTRICT = """
import os, resource, signal, sys
sys.path.insert(0, {root!r})
os.umask(0)
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, {{signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM}})
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
resource.setrlimit(resource.RLIMIT_CPU, (900, resource.RLIM_INFINITY))
leak = os.open("/dev/zero", os.O_RDONLY)
os.set_inheritable(leak, True)
from libintercom.paths import find_places
from libintercom.starting import ensure_broker
ensure_broker(find_places())
"""


def test_what_a_client_inherited_is_not_handed_on(started: Places, configure: Callable[..., str]) -> None:
    """Umask, signals, limits and descriptors of an agent's shell; and the broker outlives it as an orphan."""
    configure()
    environ = {**os.environ, "PI_INTERCOM_RUNTIME_DIR": started.runtime_dir}
    code = RESTRICT.format(root=str(ROOT))
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, start_new_session=True)
    pid = owner_of(started)
    assert member(pid, "Umask") == "0077"
    assert int(member(pid, "SigBlk"), 16) == 0
    kept = {signal.SIGPIPE, signal.SIGXFSZ}
    assert {number for number in signal.valid_signals() if int(member(pid, "SigIgn"), 16) >> (number - 1) & 1} == kept
    assert member(pid, "PPid") == "1"
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert fields[4] == "0", "no controlling terminal"
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert "Max cpu time              unlimited" in limits
    assert int(limits.split("Max open files")[1].split()[0]) > 256
    targets = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert "/dev/zero" not in targets
    assert not any(target.endswith(("/.gate", "/.guard")) for target in targets)
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"


def test_a_candidate_begins_in_the_root_directory_and_in_a_session_of_its_own(
    started: Places, configure: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any code of ours runs in it."""
    monkeypatch.chdir(tmp_path)
    configure(f"open({str(tmp_path / 'seen')!r}, 'w').write(f'{{os.getcwd()}} {{os.getsid(0) == os.getpid()}}')")
    ensure_broker(started)
    assert (tmp_path / "seen").read_text() == "/ True"


def test_no_candidate_stays_a_zombie(started: Places) -> None:
    """A zombie's pid looks alive to every program that only asks for the pid."""
    ensure_broker(started)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert str(owner_of(started)) not in children
    states = {child: Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] for child in children}
    assert "Z" not in states.values()


@pytest.mark.parametrize("crash", ["os._exit(3)", "os.kill(os.getpid(), 9)", "raise ImportError('no module x')"])
def test_a_candidate_that_crashes_is_launched_again(
    started: Places, configure: Callable[..., str], tmp_path: Path, crash: str
) -> None:
    configure(CRASH.format(mark=str(tmp_path / "mark"), crash=crash))
    ensure_broker(started)
    assert owner_of(started)


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("raise ImportError('no module named zzz')", "status 1.*no module named zzz"),
        ("os.kill(os.getpid(), 9)", "signal 9"),
        ("sys.exit(0)", "ended without a report"),
        ("print('hello'); sys.stdout.flush(); os._exit(7)", "status 7.*hello"),
    ],
)
def test_a_candidate_that_always_crashes_tells_its_last_words(
    places: Places, configure: Callable[..., str], before: str, told: str
) -> None:
    configure(before)
    with pytest.raises(NotStarted, match=f"(?s){told}"):
        ensure_broker(places, deadline_s=0.4)


def test_a_silent_candidate_is_not_killed(started: Places, configure: Callable[..., str], tmp_path: Path) -> None:
    """It may be slow, and is the owner when it is done: later starters wait for it or find it."""
    go = tmp_path / "go"
    os.mkfifo(go)
    configure(f"open({str(go)!r}).close()")
    with pytest.raises(NotStarted, match="did not report within"):
        ensure_broker(started, deadline_s=0.3)
    assert owner_of(started) == 0
    with open(go, "w", encoding="ascii"):
        pass
    wait_until(lambda: owner_of(started), "the slow candidate to win")
    ensure_broker(started)


def test_a_program_that_is_none_of_ours(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_INTERCOM_EXECUTABLE", "/bin/true")
    with pytest.raises(NotStarted, match="ended without a report"):
        ensure_broker(places, deadline_s=0.3)


def test_a_program_that_cannot_be_run(places: Places, configure: Callable[..., str]) -> None:
    path = Path(configure())
    path.write_text("#!/nonexistent/python\n")
    with pytest.raises(NotStarted, match="cannot be run"):
        ensure_broker(places, deadline_s=0.2)


def test_an_error_after_winning_is_told(
    started: Places, configure: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings are read by the winner; a bad one ends the start with its reason and leaves no files."""
    configure()
    monkeypatch.setenv("PI_INTERCOM_IDLE_EXIT_S", "soon")
    with pytest.raises(NotStarted, match=r"(?i)idle"):
        ensure_broker(started, deadline_s=3.0)
    assert set(os.listdir(started.runtime_dir)) <= {".guard", ".gate", "broker.log"}


@pytest.mark.parametrize("text", ["", "garbled\n", '1\n{"v":9}\n'])
def test_an_uncertain_owner_blocks_at_once(places: Places, runtime: str, text: str) -> None:
    Path(places.record).write_text(text)
    before = time.monotonic()
    with pytest.raises(UncertainOwner, match=r"broker\.pid"):
        ensure_broker(places)
    assert time.monotonic() - before < 2.0
    assert Path(places.record).read_text() == text


def test_a_doubtful_claim_blocks_at_the_deadline(places: Places, runtime: str) -> None:
    Path(places.claim).write_text("")
    with pytest.raises(UncertainOwner, match=r"broker\.spawn\.lock"):
        ensure_broker(places, deadline_s=0.3)


def test_a_claim_that_is_given_up_lets_the_start_go_on(started: Places, runtime: str) -> None:
    """A foreign candidate holds the start for a moment, and fails."""
    Path(started.claim).write_text(f"{os.getpid()}\n1800000000000\n")

    def give_up_the_claim(_pause_s: float) -> None:
        Path(started.claim).unlink(missing_ok=True)

    ensure_broker(started, sleep=give_up_the_claim)
    assert owner_of(started)


def test_a_killed_starter_leaves_the_gate_free(started: Places, configure: Callable[..., str], tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    configure(CRASH.format(mark=str(tmp_path / "mark"), crash=f"open({str(go)!r}).close(); sys.exit(1)"))
    starter = os.fork()
    if starter == 0:
        try:
            ensure_broker(started)
        finally:
            os._exit(0)
    wait_until((tmp_path / "mark").exists, "the first candidate to run")
    with open_directory(started.runtime_dir) as directory:
        assert try_lock(directory, ".gate") is None
        os.kill(starter, signal.SIGKILL)
        os.waitpid(starter, 0)
        with try_lock(directory, ".gate") as gate:
            assert gate is not None
    ensure_broker(started)
    with open(go, "w", encoding="ascii"):
        pass


def test_a_sandbox_is_no_reason_to_start_a_second_broker(started: Places) -> None:
    ensure_broker(started)
    pid = owner_of(started)
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from libintercom.errors import NotPermitted
from libintercom.paths import find_places
from libintercom.starting import ensure_broker
from tests.support.sandbox import forbid_connecting
forbid_connecting()
try:
    ensure_broker(find_places())
except NotPermitted as error:
    print(error)
"""
    environ = {**os.environ, "PI_INTERCOM_RUNTIME_DIR": started.runtime_dir}
    ended = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert "EPERM" in ended.stdout
    assert "not running" not in ended.stdout
    assert owner_of(started) == pid


def test_an_unsafe_directory_is_refused_before_anything_is_launched(places: Places, runtime: str) -> None:
    os.chmod(runtime, 0o711)
    with pytest.raises(UnsafeDirectory, match="0711"):
        ensure_broker(places)
    assert os.listdir(runtime) == []
