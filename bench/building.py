"""Compiling the floor and the generator with the machine's C compiler, or saying that there is none.

Owns the two programs' command lines. Does not own running them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

FOLDER = os.path.dirname(os.path.abspath(__file__))
# What a release of either would be built with.
_FLAGS = ("-O2", "-Wall", "-Wextra", "-std=gnu11")


@dataclass(frozen=True)
class Programs:
    """``broker``: the C floor, or ``""``. ``generator``: its command line. ``compiler``: ``""`` where there is none."""

    broker: str
    generator: tuple[str, ...]
    compiler: str

    @property
    def generator_name(self) -> str:
        return "generator.c" if self.compiler else "generator.py (no C compiler: its own share is larger)"


def build(folder: str, *, with_compiler: bool = True) -> Programs:
    """Compile into ``folder``. A compiler that fails is an error of ours and raises ``CalledProcessError``."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "") if with_compiler else ""
    if not compiler:
        generator = (sys.executable, "-I", f"{FOLDER}/load/generator.py")
        return Programs("", generator, "")
    broker, generator_path = f"{folder}/broker", f"{folder}/generator"
    for source, program in ((f"{FOLDER}/floors/broker.c", broker), (f"{FOLDER}/load/generator.c", generator_path)):
        subprocess.run([compiler, *_FLAGS, "-o", program, source], check=True)
    return Programs(broker, (generator_path,), compiler)
