"""What a container must be given so that pip inside it reaches the package index as this machine does.

Owns discovery at run time: pip's own configuration, proxies, certificates, and the files that these name. Nothing of
it is ever written into the repository.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

# pip options about where packages come from and how they are reached; the rest is the machine's own business.
PIP_OPTIONS = (
    "cert",
    "client-cert",
    "constraint",
    "default-timeout",
    "extra-index-url",
    "find-links",
    "index-url",
    "no-index",
    "proxy",
    "retries",
    "timeout",
    "trusted-host",
)

# Proxies and certificates, as pip, git and OpenSSL read them.
VARIABLES = (
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "FTP_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
)


@dataclass(frozen=True)
class Access:
    """``variables`` for the container's environment and the ``paths`` that they name, to be mounted read-only."""

    variables: dict[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()

    def options(self) -> list[str]:
        """Options of ``docker run``; values stay out of the command line, where others could read them."""
        named = [part for name in self.variables for part in ("--env", name)]
        mounted = [part for path in self.paths for part in ("--volume", f"{path}:{path}:ro")]
        return [*named, *mounted]


def discover(pip_listing: str | None = None, environment: dict[str, str] | None = None) -> Access:
    """Read this machine's pip configuration (``pip config list``) and environment."""
    listing = _pip_listing() if pip_listing is None else pip_listing
    environment = dict(os.environ) if environment is None else environment
    names = {*VARIABLES, *(name.lower() for name in VARIABLES)}
    variables = {name: value for name, value in environment.items() if name in names and value}
    variables.update(_pip_variables(listing))
    return Access(variables, _paths(variables))


def _pip_listing() -> str:
    command = [sys.executable, "-m", "pip", "config", "list"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _pip_variables(listing: str) -> dict[str, str]:
    """Turn lines like ``global.find-links='/wheels'`` into ``PIP_FIND_LINKS``; the environment's own come last."""
    found = {}
    lines = [line for line in listing.splitlines() if "=" in line]
    for line in sorted(lines, key=lambda line: line.startswith(":env:")):
        key, value = line.split("=", maxsplit=1)
        option = key.rsplit(".", maxsplit=1)[-1]
        if option in PIP_OPTIONS:
            found[f"PIP_{option.upper().replace('-', '_')}"] = " ".join(str(ast.literal_eval(value)).split())
    return found


def _paths(variables: dict[str, str]) -> tuple[str, ...]:
    """The existing absolute paths that the values name, none inside another."""
    named = {_place(part) for value in variables.values() for part in value.split()}
    found = sorted(path for path in named if path.startswith("/") and Path(path).exists())
    return tuple(path for path in found if not any(path.startswith(f"{other}/") for other in found))


def _place(part: str) -> str:
    """A path, or for an index in the file system the folder around it: its pages point to files beside it."""
    path = part.removeprefix("file://").rstrip("/")
    return str(Path(path).parent) if part.startswith("file://") and Path(path).is_dir() else path
