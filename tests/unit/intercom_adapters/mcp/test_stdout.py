"""Standard output of the server, in a program of its own: descriptor 1 is taken away from everybody else."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import asyncio, json, os, sys
from intercom_adapters.mcp.stdout import Stdout

async def main():
    out = Stdout()
    told = []
    out.tell_written(7, lambda: told.append(7))
    out.tell_written("8", lambda: told.append("8"))
    print("stray", flush=True)
    os.write(1, b"strayer\\n")
    await out.write(json.dumps({"jsonrpc": "2.0", "method": "ping", "id": 7}) + "\\n")
    await out.flush()
    assert told == [], told
    await out.write(json.dumps({"jsonrpc": "2.0", "id": 7, "result": {}}) + "\\n")
    assert told == [], told
    await out.flush()
    assert told == [7], told
    await out.write(json.dumps({"jsonrpc": "2.0", "id": "8", "error": {}}) + "\\n" + "")
    await out.flush()
    assert told == [7, "8"], told
    await out.write("x" * 1_000_000 + "\\n")
    await out.flush()

asyncio.run(main())
"""


def test_answers_are_told_once_written_and_stray_prints_go_to_stderr():
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert [line[:60] for line in lines[:3]] == [
        '{"jsonrpc": "2.0", "method": "ping", "id": 7}',
        '{"jsonrpc": "2.0", "id": 7, "result": {}}',
        '{"jsonrpc": "2.0", "id": "8", "error": {}}',
    ]
    assert lines[3] == "x" * 1_000_000
    assert ended.stderr == "stray\nstrayer\n"
