"""`intercomctl device list|check|install`: which other devices there are, whether they answer, and our file on them.

Owns the commands. Reaching a device is ``libintercom.devices``'s, the words are ``libintercom.device_texts``'s.
"""

from __future__ import annotations

from intercomctl import devicing, output, shapes
from intercomctl.options import JSON, Command, argument
from libintercom.devices.settings import ALL, NoDevices
from libintercom.errors import EXIT_DONE, EXIT_UNREACHABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.devices.results import DeviceCheck


def run_list(*, as_json: bool) -> int:
    """Print the configured devices; contacts none of them."""
    devices = devicing.own_devices()
    if not devices.others and not as_json:
        raise NoDevices(devices.path)
    if as_json:
        output.emit({"device": devices.own or None, "otherDevices": list(devices.others), "file": devices.path})
    else:
        output.say("\n".join([f"{devices.own} (this device)", *devices.others]))
    return EXIT_DONE


def run_check(name: str | None, *, as_json: bool) -> int:
    """Try the way to each device's command, and say where it ends."""
    # Imported here: every other command does without ssh, threads and the sentences about them.
    from libintercom.device_texts import check_text
    from libintercom.devices.running import Reach

    devices = devicing.own_devices()
    chosen = devices.choose(name or ALL)
    what = f"checking {', '.join(chosen)}"
    checks: list[DeviceCheck] = devicing.run(lambda hooks: Reach(devices.own).check(chosen, hooks), what)
    if as_json:
        output.emit({"devices": [shapes.device_check(check) for check in checks]})
    else:
        output.say("\n".join(check_text(check) for check in checks))
    return max(_status_of(check) for check in checks)


def run_install(name: str, *, as_json: bool) -> int:
    """Copy the one-file remote command to a device, or to all."""
    from intercomctl.remote import read_copy
    from libintercom.devices.installing import NotInstalled, install

    status, text = EXIT_DONE, read_copy()
    for device in devicing.own_devices().choose(name):
        try:
            done = install(device, text)
        except NotInstalled as failure:
            # The others get it all the same.
            output.note(str(failure))
            if as_json:
                output.emit({"device": device, "code": failure.code, "reason": failure.reason})
            status = max(status, failure.exit_status)
            continue
        same = "was already the same" if done.before == done.digest else "replaced another" if done.before else "is new"
        if as_json:
            output.emit({
                "device": device, "path": done.path, "sha256": done.digest, "before": done.before or None,
                "python": done.python,
            })  # fmt: skip
        else:
            output.say(f"{device}: copied to {done.path} (sha256 {done.digest}, Python {done.python}); it {same}.")
    return status


def _status_of(check: DeviceCheck) -> int:
    """A device whose broker does not run has nobody to talk to."""
    has_no_broker = check.found is not None and check.found.get("broker") is None
    return EXIT_UNREACHABLE if has_no_broker else check.exit_status


LIST = Command(
    "device list",
    run_list,
    "List the other devices.\n\nThey are named by device and otherDevices in the session settings; none is contacted.",
    JSON,
)
CHECK = Command(
    "device check",
    run_check,
    "Check that other devices answer.\n\n"
    "For each: is its name known, can ssh connect and log in, is our command there, which version, does a broker run.",
    argument("name", "Which device; without it every one.", metavar="NAME|all", is_required=False),
    JSON,
)
INSTALL = Command(
    "device install",
    run_install,
    "Copy the remote command to another device.\n\n"
    "One file, to ~/.local/share/intercom there, over your own ssh. It needs Python 3.9 there and nothing else.",
    argument("name", "Which device, or all.", metavar="NAME|all"),
    JSON,
)
