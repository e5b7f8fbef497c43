"""Lines of any input: whatever the split, whatever it is, bounded, and never more than is carried out."""

from __future__ import annotations

import asyncio
import os

import hypothesis
import pytest
from hypothesis import strategies

from intercomctl.commands.join import lines
from intercomctl.commands.join.lines import MAX_LINE_BYTES, MAX_WAITING, LineCutter, Lines
from tests.support.waiting import wait_until_async


def cut(*parts):
    cutter = LineCutter()
    return [line for part in parts for line in cutter.feed(part)] + cutter.end()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\r\n\nb", ["a", "", "b"]),
        (b"\n", [""]),
        (b"h\xc3\xa4\xff\n", ["hä\ufffd"]),
        (b"a\rb\n", ["a\rb"]),
    ],
)
def test_lines_are_what_stands_between_line_ends(raw, expected):
    assert cut(raw) == expected


@hypothesis.given(raw=strategies.binary(max_size=40).map(lambda b: b.replace(b"x", b"\n")), at=strategies.data())
def test_the_split_does_not_matter(raw, at):
    first = at.draw(strategies.integers(0, len(raw)))
    second = at.draw(strategies.integers(first, len(raw)))
    assert cut(raw[:first], raw[first:second], raw[second:]) == cut(raw)


@pytest.mark.parametrize("parts", [1, 7])
def test_a_line_over_the_limit_is_none_and_the_next_one_is_read(parts):
    long = b"a" * (MAX_LINE_BYTES + 1)
    step = -(-len(long) // parts)
    pieces = [long[at : at + step] for at in range(0, len(long), step)]
    assert cut(*pieces, b"\nnext\n") == [None, "next"]
    assert cut(*pieces) == [None]


def test_a_line_of_exactly_the_limit_is_a_line():
    assert cut(b"a" * MAX_LINE_BYTES, b"\n") == ["a" * MAX_LINE_BYTES]


async def read_all(fd):
    return [line async for line in Lines(fd)]


def test_a_pipe_is_read_to_its_end():
    reading, writing = os.pipe()
    os.write(writing, b"a\nb\nc")
    os.close(writing)
    assert asyncio.run(read_all(reading)) == ["a", "b", "c"]
    os.close(reading)


def test_an_ordinary_file_is_read_to_its_end(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    fd = os.open(path, os.O_RDONLY)
    assert asyncio.run(read_all(fd)) == ["a", "b"]
    os.close(fd)


def test_a_closed_input_is_at_its_end():
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    assert asyncio.run(read_all(reading)) == []


def test_no_more_lines_are_read_ahead_than_the_bound(monkeypatch):
    monkeypatch.setattr(lines, "_READ_BYTES", 2)
    reading, writing = os.pipe()

    async def take_one():
        source = Lines(reading)
        await anext(source)
        # A line takes one read of 2 bytes here; the thread stops at the bound, with one line in its hand.
        await wait_until_async(lambda: not source._room._value, "the thread to read as far as it may")
        return os.read(reading, 1 << 20)

    os.write(writing, b"x\n" * (MAX_WAITING * 3))
    left = asyncio.run(take_one())
    assert len(left) >= 2 * (MAX_WAITING * 3 - MAX_WAITING - 3)
    os.close(writing)
    os.close(reading)
