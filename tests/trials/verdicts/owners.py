"""Encounters with owners: living, stopped, killed, hidden, of another namespace, machine or boot, or only told of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.ownership.test_verdicts import HIDDEN_PROC, publish_legacy, publish_native
from tests.support.pids import REUSE_ATTEMPTS
from tests.trials.namespaces import NO_PID
from tests.trials.privileges import INITIAL_PIDS, MACHINE_ID, NAMESPACES, PID_REUSE, ROOT
from tests.trials.verdicts.candidates import OWN_PROC, PARENTS_PROC, Report, mounted
from tests.trials.verdicts.encounter import ALREADY, CLAIMED, READY, UNCERTAIN, encounter

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.trials.verdicts.encounter import Act
    from tests.trials.verdicts.scene import Scene

_NOBODY = 65_534
_OTHER_BOOT = "00000000-0000-4000-8000-000000000000"
_OTHER_MACHINE = "f" * 32

# ---------------------------------------------------------------- locks


@encounter("nobody was ever there", READY)
def _nobody(scene: Scene) -> Report:
    return scene.run()


@encounter("a living broker", ALREADY, "a broker listens")
def _living(scene: Scene) -> Report:
    scene.broker()
    return scene.run()


@encounter("a stopped broker", ALREADY, "a broker listens")
def _stopped(scene: Scene) -> Report:
    scene.stop(scene.broker().pid)
    return scene.run()


@encounter("a living broker whose socket was removed", CLAIMED, "holds the lock on its record")
def _unreachable(scene: Scene) -> Report:
    scene.broker()
    os.unlink(scene.places.socket)
    return scene.run()


@encounter("a killed broker", READY)
def _killed(scene: Scene) -> Report:
    scene.broker().kill()
    return scene.run()


# ---------------------------------------------------------------- pid reuse, forced through ns_last_pid


@encounter("pid reuse, our own record", READY, needs=(PID_REUSE,))
def _reused_own(scene: Scene) -> Report:
    for _attempt in range(REUSE_ATTEMPTS):
        broker = scene.broker()
        broker.kill()
        if scene.take(broker.pid):
            scene.seen = f"pid {broker.pid} reused"
            return scene.run()
    raise AssertionError(f"no broker's pid was reused in {REUSE_ATTEMPTS} attempts")


@encounter(
    "pid reuse, a record of the lineage with equal start ticks", UNCERTAIN, "exists and may be the owner", (PID_REUSE,)
)
def _reused_native(scene: Scene) -> Report:
    pid, ticks = scene.reuse_within_tick()
    scene.write_native(pid, start_ticks=ticks)
    scene.seen = f"pid {pid} reused within tick {ticks}"
    return scene.run()


@encounter("pid reuse, a legacy record", UNCERTAIN, "holds only a pid", (PID_REUSE,))
def _reused_legacy(scene: Scene) -> Report:
    pid = scene.reuse()
    scene.write("broker.pid", str(pid))
    scene.seen = f"pid {pid} reused"
    return scene.run()


@encounter("another start tick of the same pid", READY)
def _other_tick(scene: Scene) -> Report:
    pid = scene.owner(publish_native)
    first, second = Path(scene.places.record).read_text().splitlines()
    scene.write("broker.pid", f"{first}\n{second.rpartition(' ')[0]} 1\n")
    scene.seen = f"pid {pid} lives"
    return scene.run()


# ---------------------------------------------------------------- a hidden /proc, other pid namespaces


def _hidden(publish: Callable[..., None]) -> Act:
    def act(scene: Scene) -> Report:
        pid = scene.owner(publish)
        scene.hand_over(_NOBODY)
        restriction = f"as_user({_NOBODY}); assert not os.path.exists('/proc/{pid}')"
        return scene.run(HIDDEN_PROC, restriction=restriction)

    return act


encounter("hidepid, a record of the lineage", UNCERTAIN, "belongs to another user", (ROOT, NAMESPACES))(
    _hidden(publish_native)
)
encounter("hidepid, a legacy record", UNCERTAIN, "belongs to another user", (ROOT, NAMESPACES))(_hidden(publish_legacy))


@encounter("hidepid, our own record", CLAIMED, "holds the lock on its record", (ROOT, NAMESPACES))
def _hidden_own(scene: Scene) -> Report:
    scene.broker()
    os.unlink(scene.places.socket)
    scene.hand_over(_NOBODY)
    os.chown(scene.places.guard, _NOBODY, _NOBODY)
    return scene.run(HIDDEN_PROC, restriction=f"as_user({_NOBODY})")


for _prefix, _which in ((OWN_PROC, "its own /proc"), (PARENTS_PROC, "its parent's /proc")):

    @encounter(f"another pid namespace with {_which}, our own record", CLAIMED, "holds the lock", (ROOT, NAMESPACES))
    def _elsewhere_own(scene: Scene, prefix: tuple[str, ...] = _prefix) -> Report:
        scene.broker()
        os.unlink(scene.places.socket)
        return scene.run(prefix)

    @encounter(f"another pid namespace with {_which}, our own dead record", READY, needs=(ROOT, NAMESPACES))
    def _elsewhere_dead(scene: Scene, prefix: tuple[str, ...] = _prefix) -> Report:
        scene.broker().kill()
        return scene.run(prefix)

    @encounter(
        f"another pid namespace with {_which}, a dead pid", UNCERTAIN, "in the pid namespace", (ROOT, NAMESPACES)
    )
    def _elsewhere_native(scene: Scene, prefix: tuple[str, ...] = _prefix) -> Report:
        scene.write_native(NO_PID)
        return scene.run(prefix)

    @encounter(
        f"another pid namespace with {_which}, a legacy dead pid", UNCERTAIN, "may be hidden", (ROOT, NAMESPACES)
    )
    def _elsewhere_legacy(scene: Scene, prefix: tuple[str, ...] = _prefix) -> Report:
        scene.write("broker.pid", f"{NO_PID}\n")
        return scene.run(prefix)


# ---------------------------------------------------------------- another machine, another boot


def _with_machine(scene: Scene, machine: str) -> tuple[str, ...]:
    Path(f"{scene.own.parent}/machine").write_text(f"{machine}\n")
    return mounted(f"mount --bind {scene.own.parent}/machine /etc/machine-id")


def _with_boot(scene: Scene) -> tuple[str, ...]:
    Path(f"{scene.own.parent}/boot").write_text(f"{_OTHER_BOOT}\n")
    return mounted(f"mount --bind {scene.own.parent}/boot /proc/sys/kernel/random/boot_id")


@encounter("a dead pid of this machine", READY)
def _same_machine(scene: Scene) -> Report:
    scene.write_complete(NO_PID)
    return scene.run()


@encounter("another machine id", UNCERTAIN, "on another machine", (NAMESPACES, MACHINE_ID))
def _other_machine(scene: Scene) -> Report:
    scene.write_complete(NO_PID)
    return scene.run(_with_machine(scene, _OTHER_MACHINE))


@encounter("boot id changed, a pid that lives again", READY, needs=(NAMESPACES, MACHINE_ID))
def _other_boot(scene: Scene) -> Report:
    scene.write_complete(os.getpid())
    return scene.run(_with_boot(scene))


@encounter("boot id changed, no machine named", UNCERTAIN, "names another boot", (NAMESPACES,))
def _other_boot_nameless(scene: Scene) -> Report:
    scene.write_native(NO_PID)
    return scene.run(_with_boot(scene))


# ---------------------------------------------------------------- what a record says


for _name, _text, _words in (
    ("empty", "", "it is empty"),
    ("garbled", "garbled\n", "its first line is not a pid"),
    ("cut off", "1\nlinux-v1 473d87", "cut off"),
    ("binary", b"\xff\xfe\x00", "it is not text"),
    ("endless", "1\n" * 4096, "longer than"),
    ("a future form", "1\nlinux-v9 anything\n", "unknown form or version"),
    ("a future version", '1\n{"v":9}\n', "has version 9"),
    ("a legacy living pid", f"{os.getpid()}\n", "holds only a pid"),
):

    @encounter(f"record: {_name}", UNCERTAIN, _words)
    def _record(scene: Scene, text: str | bytes = _text) -> Report:
        scene.write("broker.pid", text)
        return scene.run()

    @encounter(f"claim: {_name}", CLAIMED, _words)
    def _claim(scene: Scene, text: str | bytes = _text) -> Report:
        scene.write("broker.spawn.lock", text)
        return scene.run()


@encounter("record: a legacy dead pid", READY, needs=(INITIAL_PIDS,))
def _legacy_dead(scene: Scene) -> Report:
    scene.write("broker.pid", str(NO_PID))
    return scene.run()


@encounter("claim: a dead pid's", READY, needs=(INITIAL_PIDS,))
def _dead_claim(scene: Scene) -> Report:
    scene.write("broker.spawn.lock", f"{NO_PID}\n1800000000000\n")
    return scene.run()


@encounter("claim: a living pid's, from 1970", CLAIMED, "holds only a pid")
def _old_claim(scene: Scene) -> Report:
    scene.write("broker.spawn.lock", f"{os.getpid()}\n1\n")
    os.utime(f"{scene.own.directory}/broker.spawn.lock", (0, 0))
    return scene.run()
