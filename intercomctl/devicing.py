"""Other devices from the command line: who may reach them, a request that Ctrl-C withdraws, and how its end is told.

Owns what `list`, `send`, `ask` and `device` share about them. What happens on the way is ``libintercom.devices``'s, the
sentences are ``libintercom.device_texts``'s.
"""

from __future__ import annotations

from intercomctl import joining, output, shapes
from intercomctl.failures import InvalidUsage
from libintercom.devices.naming import find_target, find_waiting, require_main
from libintercom.devices.settings import read_devices
from libintercom.errors import EXIT_DONE, EXIT_INTERRUPTED, IntercomError
from libintercom.identity import find_lineage, find_native_id
from libintercom.paths import find_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from libintercom.devices.naming import DeviceTarget
    from libintercom.devices.results import DeviceListing, DeviceResult
    from libintercom.devices.settings import Devices
    from libintercom.devices.transport import Hooks
    from libintercom.drafts import SendOptions

# How often the progress line moves.
_TICK_S = 1.0


def own_devices() -> Devices:
    """The devices of the session settings, for a main only.

    Raises:
        NotAMain: inside a child's shell.
        InvalidConfiguration: the settings cannot be used.

    """
    require_main(is_child=find_lineage(find_native_id()).is_child)
    return read_devices(find_places().session_settings)


def aim(to: str) -> DeviceTarget | None:
    """The session on another device that ``to`` means; None for a local target. Raises as ``find_target``."""
    # Without an "@" nothing else is looked at: no settings are read for an ordinary message.
    if "@" not in to:
        return None
    target = find_target(to, read_devices(find_places().session_settings))
    if target is not None:
        require_main(is_child=find_lineage(find_native_id()).is_child)
    return target


def find_asker(to: str) -> str:
    """The peer ID of the asker of another device that waits at this device's broker; "" when none does."""
    try:
        with joining.observe(may_start=False) as client:
            return find_waiting(to, client.list_sessions().rows)
    except IntercomError:
        # Without a broker here nobody waits at it.
        return ""


def list_sessions(name: str, to: str, *, as_json: bool) -> int:
    """Print the main sessions of one device, or of all."""
    from libintercom.device_texts import devices_text
    from libintercom.devices.running import Reach

    devices = own_devices()
    chosen = devices.choose(name)
    what = f"asking {', '.join(chosen)}"
    listings = run(lambda hooks: Reach(devices.own).list_sessions(chosen, to, hooks), what)
    if as_json:
        output.emit({"devices": [shapes.device_listing(listing) for listing in listings]})
    else:
        output.say(devices_text(listings, to))
    return _status_of_listings(listings)


def send(
    target: DeviceTarget,
    session: tuple[str | None, str | None],
    text: str | None,
    options: SendOptions,
    *,
    as_json: bool,
) -> int:
    """Send to a main on another device and tell the end; ``session`` is as whom: a name and a native ID."""
    from libintercom.device_texts import sent_there_text
    from libintercom.devices.running import Reach, Sender

    sender, origin = Sender.of(joining.speaking_profile(*session)), own_devices().own
    result: DeviceResult = run(
        lambda hooks: Reach(origin).send(target, sender, text, options, hooks), f"sending to {target}"
    )
    if result.outcome.is_accepted and not result.ended_by and not as_json:
        output.say(sent_there_text(result, options))
    return _tell(result, as_json=as_json)


def ask(
    target: DeviceTarget,
    session: tuple[str | None, str | None],
    text: str,
    timeout_s: float,
    options: SendOptions,
    *,
    as_json: bool,
) -> int:
    """Ask a main on another device, wait, and print its reply."""
    from libintercom.device_texts import replied_text
    from libintercom.devices.running import Reach, Sender

    sender, origin = Sender.of(joining.speaking_profile(*session)), own_devices().own
    what = f"asked {target}; waiting for the reply"
    result: DeviceResult = run(
        lambda hooks: Reach(origin).ask(target, sender, text, options, timeout_s, hooks), what, timeout_s
    )
    if result.reply is not None and not as_json:
        output.say(replied_text(result))
    return _tell(result, as_json=as_json)


def run(request: Callable[[Hooks], Any], what: str, most_s: float = 0.0) -> Any:
    """Run a request and show on a terminal that it takes its time; Ctrl-C withdraws it and its end is still told."""
    # Imported here: a local message does without threads.
    from libintercom.devices.running import Running

    with Running(request) as running:
        try:
            _watch(running.wait, what, most_s)
        except KeyboardInterrupt:
            running.withdraw()
            running.wait()
        finally:
            output.show_progress("")
        return running.result()


def _watch(wait: Callable[[float], bool], what: str, most_s: float) -> None:
    passed_s = 0
    of_most = f" of {most_s:g} s" if most_s else ""
    while not wait(_TICK_S):
        passed_s += 1
        output.show_progress(f"{what}, {passed_s} s{of_most}")


def _tell(result: DeviceResult, *, as_json: bool) -> int:
    from libintercom.device_texts import failed_text

    if result.ended_by or not result.outcome.is_accepted:
        output.note(failed_text(result))
    if as_json:
        output.emit(shapes.device_result(result))
    return result.exit_status


def _status_of_listings(listings: list[DeviceListing]) -> int:
    """Done when any device answered; what became of the others stands in their blocks."""
    statuses = [listing.exit_status for listing in listings]
    if EXIT_INTERRUPTED in statuses:
        return EXIT_INTERRUPTED
    return EXIT_DONE if EXIT_DONE in statuses else max(statuses)


def refuse_combination(**given: object) -> None:
    """Refuse options of a local list beside a device.

    Raises:
        InvalidUsage: one of them was given.

    """
    for spelling, value in given.items():
        if value:
            raise InvalidUsage(f"--{spelling} cannot be combined with --device; it is about this device's sessions.")
