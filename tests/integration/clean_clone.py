"""The README's two commands on a fresh clone, in a container with only python3, venv, git and make.

Run: ``make clean-clone`` (CLEAN_CLONE_ARGS="--uncommitted" for the files as they lie here, "--target setup" for less).
Prints how long each step took and exits with another status than 0 when one failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import lab, package_index

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]

# What a fresh machine has; ca-certificates and the rest come with none of them.
PACKAGES = ("python3", "python3-venv", "git", "make")

# Half an hour: the bar for everything on a two-core machine is 25 minutes.
STEP_TIMEOUT_S = 1800.0

# Where things are inside the container.
BUNDLE, CLONE = "/seed/intercom.bundle", "/home/intercom"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    steps = [("git clone", f"git -c advice.detachedHead=false clone --quiet {BUNDLE} {CLONE}", "/")]
    steps += [(f"make {target}", f"make {target}", CLONE) for target in options.target or ("demo", "test")]
    with tempfile.TemporaryDirectory(prefix="intercom-clone-") as folder, lab.engine() as engine:
        os.chmod(folder, 0o755)
        print(f"clean-clone: {_bundle(Path(folder), uncommitted=options.uncommitted)}")
        started = time.monotonic()
        image = engine.image(PACKAGES)
        print(f"clean-clone: {engine.origin}, image {image} ({lab.SUITE}: {', '.join(PACKAGES)})", end=" ")
        print(f"ready after {time.monotonic() - started:.1f} s", flush=True)
        return _walk(engine, image, folder, steps)


def _walk(engine: lab.Engine, image: str, folder: str, steps: list[tuple[str, str, str]]) -> int:
    """Take every step until one fails; print the timings; return the exit status."""
    access = package_index.discover()
    options = ["--network", "host", "--volume", f"{folder}:/seed:ro", "--env", "LANG=C.UTF-8", *access.options()]
    lines, status = [], 0
    with engine.container(image, *options, environment={**os.environ, **access.variables}) as container:
        print(f"clean-clone: {container.read('python3 --version; nproc').split()} (Python, cores)", flush=True)
        for name, script, where in steps:
            print(f"clean-clone: {name}", flush=True)
            started = time.monotonic()
            status = container.run(script, STEP_TIMEOUT_S, folder=where)
            lines.append(f"  {name:<12} {time.monotonic() - started:7.1f} s  {'failed' if status else 'passed'}")
            if status:
                break
    print("clean-clone: timings", *lines, sep="\n")
    print(f"{len(lines) - bool(status)} passed, {int(bool(status))} failed")
    return 1 if status else 0


def _bundle(folder: Path, *, uncommitted: bool) -> str:
    """Write the bundle that is cloned; say what is in it."""
    source = ROOT
    if uncommitted:
        source = folder / "tree"
        _snapshot(source)
    _git(source, "bundle", "create", "--quiet", str(folder / Path(BUNDLE).name), "HEAD")
    head = _git(source, "log", "-1", "--format=%h %s").strip()
    changed = len(_git(ROOT, "status", "--porcelain", "--untracked-files=all").splitlines())
    if uncommitted:
        return f"the files as they lie here, {changed} of them not committed"
    return f"commit {head}" + (f" ({changed} uncommitted files left out)" if changed else "")


def _snapshot(target: Path) -> None:
    """Commit the files as they lie here to a repository of its own; this one is only read."""
    names = _git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    target.mkdir()
    present = "\0".join(name for name in names.split("\0") if name and (ROOT / name).is_file())
    copy = ["tar", "--create", "--file=-", "--null", "--files-from=-"]
    packed = subprocess.run(copy, cwd=ROOT, input=present.encode(), check=True, capture_output=True).stdout
    subprocess.run(["tar", "--extract", "--file=-"], cwd=target, input=packed, check=True)
    _git(target, "init", "--quiet", "--initial-branch=main")
    _git(target, "add", "--all")
    _git(target, "-c", "user.name=snapshot", "-c", "user.email=snapshot@localhost", "commit", "--quiet", "-m", "tree")


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="clean_clone", description=__doc__)
    parser.add_argument("--uncommitted", action="store_true", help="clone the files as they lie here, not HEAD")
    parser.add_argument("--target", action="append", help="a make target; may be repeated (default: demo, test)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except lab.LabFailure as failure:
        sys.exit(f"clean-clone: {failure}")
