"""The truthful writer against a scripted kernel: a token is taken with the last byte of its frame, never before."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercomd.edges.listener.output import Output
from libintercom.errors import TooLarge
from libintercom.wire.codec import join_incoming
from libintercom.wire.frames import FrameReader, frame

ROW, MESSAGE = b'{"id":"a"}', b'{"id":"m"}'


class Kernel:
    """A socket that takes so many bytes a call, then blocks; ``limits`` are used up one a call (None: everything)."""

    def __init__(self, *limits: int | None) -> None:
        self.limits = list(limits)
        self.took = b""
        self.calls = 0

    def sendmsg(self, pieces: list[bytes]) -> int:
        return self.send(b"".join(pieces))

    def send(self, offered: bytes) -> int:
        self.calls += 1
        limit = self.limits.pop(0) if self.limits else 0
        if limit == 0:
            raise BlockingIOError
        if limit == -1:
            raise BrokenPipeError(32, "Broken pipe")
        taken = bytes(offered)[:limit]
        self.took += taken
        return len(taken)


def make(*limits: int | None) -> tuple[Output, Kernel]:
    kernel = Kernel(*limits)
    return Output(cast("Any", kernel)), kernel


def test_what_the_kernel_takes_whole_is_taken() -> None:
    output, kernel = make(None)
    output.append(frame(b"{}"))
    output.append_message(ROW, MESSAGE, 7)
    taken: list[int] = []
    assert output.write(taken)
    assert (taken, output.waiting_bytes, output.is_blocked, kernel.calls) == ([7], 0, False, 1)
    assert kernel.took == frame(b"{}") + frame(join_incoming(ROW, MESSAGE))


def test_each_token_is_taken_once_when_it_takes_several_calls() -> None:
    output, kernel = make(None, None, None)
    output.append_messages(ROW, [b"x" * 200_000] * 3, range(5, 8))
    taken: list[int] = []
    assert output.write(taken)
    assert (taken, kernel.calls > 1) == ([5, 6, 7], True)


def test_several_messages_are_what_each_alone_would_be() -> None:
    messages = [MESSAGE, b"x" * 20_000, b"{}"]
    together, one_by_one = make(None), make(None)
    together[0].append_messages(ROW, messages, range(1, 4))
    for token, message in enumerate(messages, 1):
        one_by_one[0].append_message(ROW, message, token)
    assert together[0].waiting_bytes == one_by_one[0].waiting_bytes
    assert all(output.write([]) for output, _kernel in (together, one_by_one))
    assert together[1].took == one_by_one[1].took


def test_one_piece_goes_out_at_once() -> None:
    output, kernel = make(None)
    output.append_message(ROW, MESSAGE, 7)
    taken: list[int] = []
    assert output.write_at_once(taken)
    assert (taken, output.waiting_bytes, kernel.took) == ([7], 0, frame(join_incoming(ROW, MESSAGE)))
    assert output.pop_held([]) == []


@pytest.mark.parametrize("limit", [0, 1, 10, -1])
def test_what_does_not_go_out_at_once_goes_on_the_long_way(limit: int) -> None:
    output, kernel = make(limit, None)
    output.append_message(ROW, MESSAGE, 7)
    taken: list[int] = []
    assert not output.write_at_once(taken)
    assert taken == []
    assert output.write(taken)
    assert (taken, kernel.took) == ([7], frame(join_incoming(ROW, MESSAGE)))


def test_nothing_is_offered_at_once_behind_what_waits() -> None:
    output, kernel = make(5, None)
    output.append(frame(b"{}"))
    output.append_message(ROW, MESSAGE, 7)
    assert not output.write_at_once([])
    assert kernel.calls == 0
    assert not output.write([])
    assert not output.write_at_once([])
    assert kernel.calls == 1


def test_one_byte_less_than_a_frame_is_held() -> None:
    whole = len(frame(join_incoming(ROW, MESSAGE)))
    output, kernel = make(whole - 1, None)
    output.append_message(ROW, MESSAGE, 7)
    taken: list[int] = []
    assert not output.write(taken)
    assert (taken, output.waiting_bytes, output.is_blocked) == ([], 1, True)
    assert output.pop_held(taken) == [7]
    assert output.pop_held(taken) == []
    assert output.write(taken)
    assert (taken, kernel.took) == ([7], frame(join_incoming(ROW, MESSAGE)))


def test_nothing_taken_blocks_and_holds() -> None:
    output, _kernel = make(0)
    output.append_message(ROW, MESSAGE, 1)
    output.append_message(ROW, MESSAGE, 2)
    taken: list[int] = []
    assert not output.write(taken)
    assert output.pop_held(taken) == [1, 2]


def test_what_was_taken_before_an_error_is_told() -> None:
    first = len(frame(join_incoming(ROW, MESSAGE)))
    output, _kernel = make(first + 3, -1)
    output.append_message(ROW, MESSAGE, 1)
    output.append_message(ROW, MESSAGE, 2)
    taken: list[int] = []
    assert not output.write(taken)
    with pytest.raises(BrokenPipeError):
        output.write(taken)
    assert taken == [1]


def test_a_large_message_is_not_copied_into_one_piece() -> None:
    large = b'{"x":"' + b"y" * 200_000 + b'"}'
    output, kernel = make(100_000, 50_000, None)
    output.append_message(ROW, large, 1)
    taken: list[int] = []
    assert not output.write(taken)
    assert not output.write(taken)
    assert output.write(taken)
    assert taken == [1]
    assert kernel.took == frame(join_incoming(ROW, large))


def test_more_pieces_than_one_call_takes_go_out_in_order() -> None:
    output, kernel = make(*[None] * 20)
    for number in range(5_000):
        output.append(frame(b"%d" % number))
    assert output.write([])
    assert list(FrameReader().feed(kernel.took)) == [b"%d" % number for number in range(5_000)]
    assert 5 <= kernel.calls <= 20


@pytest.mark.parametrize("size", [1_048_576, 1_048_577])
def test_the_frame_limit_holds(size: int) -> None:
    output, _kernel = make(None)
    message = b"x" * (size - len(join_incoming(ROW, b"")))
    if size > 1_048_576:
        with pytest.raises(TooLarge):
            output.append_message(ROW, message, 1)
        assert output.waiting_bytes == 0
    else:
        output.append_message(ROW, message, 1)
        assert output.waiting_bytes == size + 4


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 40_000)), max_size=12),
    st.lists(st.integers(1, 30_000), max_size=30),
)
def test_tokens_follow_the_bytes(frames: list[tuple[bool, int]], limits: list[int]) -> None:
    output, kernel = make(*limits)
    ends: dict[int, int] = {}
    sent = b""
    for token, (has_token, size) in enumerate(frames):
        body = b"x" * size
        if has_token:
            output.append_message(ROW, body, token)
            sent += frame(join_incoming(ROW, body))
            ends[token] = len(sent)
        elif body:
            output.append(frame(body))
            sent += frame(body)
    taken: list[int] = []
    for _ in limits:
        output.write(taken)
        assert taken == [token for token, end in ends.items() if end <= len(kernel.took)]
        assert output.waiting_bytes == len(sent) - len(kernel.took)
        assert sent.startswith(kernel.took)
