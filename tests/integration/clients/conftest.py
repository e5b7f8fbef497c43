"""What the client tests share: both kinds of client, and a scripted broker's usual answers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.client import Client
from libintercom.profile import Profile
from tests.support.driven import DrivenClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROFILE = Profile(cwd="/work", model="model-a", name="me")


@pytest.fixture(params=[Client, DrivenClient])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def make(kind: Any) -> Iterator[Callable[..., Any]]:
    """Clients for a path; each is disconnected afterwards, whatever happened to it."""
    with contextlib.ExitStack() as stack:

        def build(path: str, **options: Any) -> Any:
            client = kind(PROFILE, path=path, **options)
            stack.callback(client.close if kind is DrivenClient else client.disconnect)
            return client

        yield build
