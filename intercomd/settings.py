"""What an operator can set: the only reader of the daemon's configuration (ownership.md section 1).

Owns the keys, their order of precedence and where each value came from. Does not own what the numbers mean
(``core.limits``). Two keys are for whoever starts a broker (``libintercom.starting`` reads them); they are known here
so that one file serves both.

Later wins: defaults, ``/etc/intercom/config.json``, ``config.json`` in the passwd home's ``.config/intercom``,
``PI_INTERCOM_*`` variables, flags. There is no ``.env`` file and no other variable. pydantic-settings takes longer to
load than the rest of the broker, so it is left alone where nothing is set.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

from intercomd.core.limits import Limits, raise_rates
from libintercom.errors import InvalidConfiguration
from libintercom.starting import SPAWN, read_settings_file, read_start_settings
from libintercom.wire.values import is_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationError
    from pydantic_settings import BaseSettings

    from libintercom.paths import Places

VARIABLE_PREFIX = "PI_INTERCOM_"
DEFAULT = "default"
ENVIRONMENT = "the environment"
FLAGS = "the command line"
# In a variable, which has no null: no idle exit.
_NONE_WORD = "none"
# A megabyte of log tells days; one old file is kept besides.
_LOG_BYTES = 1024 * 1024
_MIN_LOG_BYTES = 4096
_LOOPS = ("auto", "asyncio", "uvloop")
_LEVELS = ("debug", "info", "warning", "error")
# Nothing, or an absolute path: the broker's own directory is the root.
_ABSOLUTE_PATH = "^(/.*)?$"
# Limits of which 0 means something.
_MAY_BE_ZERO = ("idle_exit_s", "stage_delay_s", "max_list_delay_s")


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The effective settings. ``origins`` says for each key (as attribute name) where its value came from."""

    limits: Limits = dataclasses.field(default_factory=Limits)
    # Which event loop serves: uvloop where it is installed, or one by name.
    loop: str = "auto"
    log_level: str = "info"
    log_bytes: int = _LOG_BYTES
    # The file of what survives a restart; empty: the one of this namespace in the user's state folder.
    spool: str = ""
    start_policy: str = SPAWN
    executable: str = ""
    origins: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def values(self) -> dict[str, object]:
        """Every key as an attribute name with its value."""
        own = {name: getattr(self, name) for name in _OWN_NAMES}
        return {**own, **dataclasses.asdict(self.limits)}


_SERVING_NAMES = ("loop", "log_level", "log_bytes", "spool")
_OWN_NAMES = (*_SERVING_NAMES, "start_policy", "executable")
_LIMIT_NAMES = tuple(field.name for field in dataclasses.fields(Limits))
NAMES = (*_OWN_NAMES, *_LIMIT_NAMES)
_NUMBERS = ("log_bytes", *_LIMIT_NAMES)
# A running broker takes these over; the last two are read by whoever starts the next one.
_AT_ONCE = ("log_level", "start_policy", "executable")
# ``null`` there: the broker never leaves by itself.
_NULLABLE = ("idle_exit_s",)


def load(places: Places, *, idle_exit_s: float | None = None, limits: str | None = None) -> Settings:
    """The effective settings. ``idle_exit_s`` and ``limits`` (``bench``) are flags.

    Raises:
        InvalidConfiguration: a file, a key or a value cannot be used; it names source, key and reason.
    """
    flags: dict[str, Any] = {} if idle_exit_s is None else {"idle_exit_s": idle_exit_s}
    sources = {FLAGS: flags, ENVIRONMENT: _given_variables()}
    sources.update((path, _read_file(path, places.uid)) for path in reversed(places.settings_files))
    origins = {name: _origin(name, sources) for name in NAMES}
    # Whoever starts a broker judges these two by the same words.
    start = read_start_settings(places)
    values = {**_defaults(), **flags, "start_policy": start.policy, "executable": start.executable}
    if any(origins[name] not in (DEFAULT, FLAGS) for name in (*_SERVING_NAMES, *_LIMIT_NAMES)):
        values.update(_validate(sources, origins))
    chosen = Limits(**{name: values[name] for name in _LIMIT_NAMES})
    if limits is not None:
        chosen = raise_rates(chosen)
    return Settings(**{name: values[name] for name in _OWN_NAMES}, limits=chosen, origins=origins)


def key_of(name: str) -> str:
    """The key of an attribute name in a file: ``log_bytes`` is ``logBytes``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def variable_of(name: str) -> str:
    """The environment variable of an attribute name."""
    return VARIABLE_PREFIX + name.upper()


def compare(before: Settings, after: Settings) -> tuple[list[str], list[str]]:
    """Which keys changed: those that apply at once, and those that a running broker cannot take over."""
    old, new = before.values(), after.values()
    changed = [name for name in NAMES if old[name] != new[name]]
    return [name for name in changed if name in _AT_ONCE], [name for name in changed if name not in _AT_ONCE]


def take_over(before: Settings, after: Settings) -> Settings:
    """What is in force once a running broker took over what it can."""
    return dataclasses.replace(before, **{name: getattr(after, name) for name in _AT_ONCE})


def describe(places: Places) -> str:
    """All of it as JSON: each key with its value and source, and the files that were looked for.

    Raises:
        InvalidConfiguration: as ``load``.
    """
    chosen = load(places)
    shown = {key_of(name): {"value": value, "source": chosen.origins[name]} for name, value in chosen.values().items()}
    files = [{"path": path, "exists": os.path.lexists(path)} for path in places.settings_files]
    return json.dumps({"version": 1, "settings": shown, "files": files}, indent=2)


def _defaults() -> dict[str, Any]:
    return Settings().values()


def _given_variables() -> dict[str, Any]:
    """The texts of the variables; the usual source would take a variable in any mixture of letters for ours."""
    given: dict[str, Any] = {name: os.environ[variable_of(name)] for name in NAMES if variable_of(name) in os.environ}
    given.update((name, None) for name in _NULLABLE if given.get(name) == _NONE_WORD)
    return given


def _read_file(path: str, uid: int) -> dict[str, Any]:
    """A file's values by attribute name. A key that nobody knows is an error: it is a misspelt one."""
    names = {key_of(name): name for name in NAMES}
    values: dict[str, Any] = {}
    for key, value in read_settings_file(path, uid).items():
        if key not in names:
            raise InvalidConfiguration(path, key, "there is no such key", _suggest(key, list(names)))
        if names[key] in _NUMBERS and not (is_number(value) or (value is None and names[key] in _NULLABLE)):
            raise InvalidConfiguration(path, key, f"a number is needed, not {value!r:.80}")
        values[names[key]] = value
    return values


def _suggest(key: str, known: list[str]) -> str:
    import difflib  # imported here: only a mistake needs it

    near = difflib.get_close_matches(key, known, n=3)
    return f"Did you mean {' or '.join(near)}?" if near else "All keys: intercomd config --json"


def _origin(name: str, sources: Mapping[str, Mapping[str, object]]) -> str:
    return next((source for source, values in sources.items() if name in values), DEFAULT)


def _validate(sources: Mapping[str, dict[str, Any]], origins: Mapping[str, str]) -> dict[str, Any]:
    from pydantic import ValidationError  # imported here: see the module's docstring

    try:
        return _model(sources)().model_dump()
    except ValidationError as error:
        raise _explain(error, origins) from None


def _explain(error: ValidationError, origins: Mapping[str, str]) -> InvalidConfiguration:
    """The first thing wrong, as the person who set it knows it."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "recipient_bytes"
    source = origins[name]
    shown = {ENVIRONMENT: variable_of(name), FLAGS: f"--{name.replace('_', '-')}"}.get(source, key_of(name))
    return InvalidConfiguration(source, shown, f"{first['msg']}, not {first['input']!r:.80}")


def _model(sources: Mapping[str, dict[str, Any]]) -> type[BaseSettings]:
    """The pydantic model of all keys, fed by exactly these sources, earlier ones winning."""
    from pydantic import create_model
    from pydantic_settings import BaseSettings, InitSettingsSource, SettingsConfigDict

    class Model(BaseSettings):
        model_config = SettingsConfigDict(extra="forbid", hide_input_in_errors=False)

        @classmethod
        def settings_customise_sources(cls, settings_cls: type[BaseSettings], **_usual: object) -> tuple[Any, ...]:  # type: ignore[override]
            return tuple(InitSettingsSource(settings_cls, _own(values)) for values in sources.values())

    fields: dict[str, Any] = {name: (kind, default) for name, (kind, default) in _fields().items()}
    return create_model("Configuration", __base__=Model, **fields)


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a source that the model judges."""
    return {name: value for name, value in values.items() if name in _SERVING_NAMES or name in _LIMIT_NAMES}


def _fields() -> dict[str, tuple[Any, Any]]:
    """Each key's type and default; a limit's from its declaration in ``Limits``."""
    from pydantic import Field

    fields: dict[str, tuple[Any, Any]] = {
        "loop": (Literal[_LOOPS], "auto"),
        "log_level": (Literal[_LEVELS], "info"),
        "log_bytes": (Annotated[int, Field(ge=_MIN_LOG_BYTES)], _LOG_BYTES),
        "spool": (Annotated[str, Field(pattern=_ABSOLUTE_PATH)], ""),
    }
    for limit in dataclasses.fields(Limits):
        bound = Field(ge=0, allow_inf_nan=False) if limit.name in _MAY_BE_ZERO else Field(gt=0, allow_inf_nan=False)
        number: Any = int if limit.type == "int" else float
        fields[limit.name] = (
            Annotated[number, bound] | None if limit.name in _NULLABLE else Annotated[number, bound],
            limit.default,
        )
    return fields
