"""A hostile place: code, libraries, programs and settings that leave a mark when anything loads or runs them.

Owns making them in one folder and reading the marks. A mark says what was loaded and by which command line, so that
one left by the client itself, which is in the middle of it, is told from one left by a broker or a candidate.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
from pathlib import Path

COMPILER = "cc"

# Packages that the broker imports, and modules that every Python imports by itself where it finds them.
_PACKAGES = ("msgspec", "intercomd", "structlog", "uvloop", "pydantic", "pydantic_settings")
_SITE_MODULES = ("sitecustomize", "usercustomize")
# What a client needs itself; in a folder of their own, since one with these on its path would not start at all.
_SHADOWS = ("json", "socket", "signal", "asyncio", "encodings", "site", "os", "fcntl", "libintercom")
# Names that the broker's start might look for on PATH.
_PROGRAMS = ("intercomd", "python", "python3", "env", "sh", "id", "uname", "ldconfig", "gcc")
# Names under which the broker's interpreter asks for shared libraries.
_LIBRARIES = ("libc.so.6", "libm.so.6", "libz.so.1", "libpthread.so.0", "libdl.so.2", "libutil.so.1", "libffi.so.8")

_MARKING = """
import os as _os
with open("/proc/self/cmdline") as _c, open({marks!r}, "a") as _m:
    _m.write({what!r} + "\\t" + _c.read().replace("\\0", " ") + "\\n")
"""

_MARKING_C = r"""
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void mark(void) {
    char line[4096] = "library\t";
    size_t have = strlen(line);
    int from = open("/proc/self/cmdline", O_RDONLY), to = open(MARKS, O_WRONLY | O_APPEND);
    ssize_t got = from < 0 ? 0 : read(from, line + have, sizeof line - have - 1);
    for (ssize_t i = 0; i < got; i++) if (!line[have + i]) line[have + i] = ' ';
    if (got > 0) have += got;
    line[have++] = '\n';
    if (to >= 0) { (void)!write(to, line, have); close(to); }
    if (from >= 0) close(from);
}
unsigned int la_version(unsigned int version) { return version; }
"""


@dataclasses.dataclass(frozen=True)
class Mark:
    """Something hostile was loaded: what, and in which program."""

    what: str
    command: str

    @property
    def is_broker(self) -> bool:
        """Whether a broker, a candidate or the launched program left it."""
        return "serve" in self.command.split()


class HostilePlace:
    """The folder. ``library`` is the path of the marking shared library, "" without a compiler."""

    def __init__(self, folder: str) -> None:
        self.folder = f"{folder}/hostile"
        self.marks_path = f"{folder}/marks"
        self.shadows, self.programs, self.home = (f"{self.folder}/{name}" for name in ("shadows", "bin", "home"))
        self.libraries = f"{self.folder}/lib"
        for path in (self.folder, self.shadows, self.programs, self.libraries, f"{self.home}/.config/intercom"):
            os.makedirs(path)
        Path(self.marks_path).touch()
        self._write_python()
        self._write_programs()
        self._write_settings()
        self.library = self._compile()

    def marks(self) -> list[Mark]:
        lines = Path(self.marks_path).read_text(encoding="utf-8", errors="replace").splitlines()
        return [Mark(*line.partition("\t")[::2]) for line in lines]

    def _marking(self, what: str) -> str:
        return _MARKING.format(marks=self.marks_path, what=what)

    def _write_python(self) -> None:
        for name in _PACKAGES:
            os.mkdir(f"{self.folder}/{name}")
            Path(f"{self.folder}/{name}/__init__.py").write_text(self._marking(f"package {name}"))
        for name in _SITE_MODULES:
            Path(f"{self.folder}/{name}.py").write_text(self._marking(f"module {name}"))
        for name in _SHADOWS:
            Path(f"{self.shadows}/{name}.py").write_text(self._marking(f"shadow {name}"))
        Path(f"{self.folder}/startup.py").write_text(self._marking("startup file"))
        for minor in range(9, 16):
            site = f"{self.home}/.local/lib/python3.{minor}/site-packages"
            os.makedirs(site)
            Path(f"{site}/usercustomize.py").write_text(self._marking("user site"))
            one_line = self._marking("path file").strip().replace("\n    ", " ").split("\n")
            Path(f"{site}/hostile.pth").write_text(f"{one_line[0]}; exec({'; '.join(one_line[1:])!r})\n")

    def _write_programs(self) -> None:
        for name in _PROGRAMS:
            path = Path(f"{self.programs}/{name}")
            path.write_text(f'#!/bin/sh\nprintf "program {name}\\t%s serve\\n" "$0 $*" >> {self.marks_path}\nexit 99\n')
            path.chmod(0o755)
        Path(f"{self.folder}/shell").write_text(f'echo "shell file\t$0 serve" >> {self.marks_path}\n')

    def _write_settings(self) -> None:
        settings = {"executable": f"{self.programs}/intercomd", "startPolicy": "never", "maxSessions": 1}
        Path(f"{self.home}/.config/intercom/config.json").write_text(json.dumps(settings))

    def _compile(self) -> str:
        if shutil.which(COMPILER) is None:
            return ""
        built, source = f"{self.libraries}/mark.so", f"{self.folder}/mark.c"
        Path(source).write_text(f'#define MARKS "{self.marks_path}"\n{_MARKING_C}')
        subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", built, source], check=True)
        for name in _LIBRARIES:
            shutil.copy(built, f"{self.libraries}/{name}")
        return built
