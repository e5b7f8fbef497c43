"""The import rule that says what a package may import, where import-linter's own rules say what it may not.

Owns the contract type ``only`` of ``.importlinter``. A ban has to name every wrong import in advance; this one
names the right ones, so a new dependency and a new wall-crossing fail alike. Does not own the rules themselves.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

from importlinter import Contract, ContractCheck, fields, output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grimp import ImportGraph


def is_within(name: str, package: str) -> bool:
    """Say whether ``name`` is ``package`` or lies inside it."""
    return name == package or name.startswith(f"{package}.")


class OnlyContract(Contract):
    """``source_modules`` import nothing but themselves, ``allowed_modules`` and, if said, the standard library.

    Modules are packages: what lies inside a source or an allowed module belongs to it. ``except_modules`` are parts of
    a source that another contract judges.
    """

    type_name = "only"

    source_modules = fields.ListField(subfield=fields.StringField())
    allowed_modules = fields.ListField(subfield=fields.StringField(), required=False, default=[])
    except_modules = fields.ListField(subfield=fields.StringField(), required=False, default=[])
    standard_library = fields.BooleanField(required=False, default=True)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        breaches = [
            (importer, imported, self._lines(graph, importer, imported))
            for importer in sorted(self._importers(graph))
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if not self._is_allowed(imported)
        ]
        return ContractCheck(kept=not breaches, metadata={"breaches": breaches})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported, lines in check.metadata["breaches"]:
            output.print_error(f"{importer} is not allowed to import {imported} (line {lines})")
        output.new_line()

    def _importers(self, graph: ImportGraph) -> Iterator[str]:
        excepted = cast("list[str]", self.except_modules)
        for source in cast("list[str]", self.source_modules):
            found = [name for name in graph.modules if is_within(name, source)]
            if not found:
                message = f"source module {source!r} of contract {self.name!r} does not exist"
                raise ValueError(message)
            yield from (name for name in found if not any(is_within(name, other) for other in excepted))

    def _is_allowed(self, imported: str) -> bool:
        if self.standard_library and imported.split(".", maxsplit=1)[0] in sys.stdlib_module_names:
            return True
        sources, allowed = cast("list[str]", self.source_modules), cast("list[str]", self.allowed_modules)
        return any(is_within(imported, package) for package in [*sources, *allowed])

    @staticmethod
    def _lines(graph: ImportGraph, importer: str, imported: str) -> str:
        details = graph.get_import_details(importer=importer, imported=imported)
        return ", ".join(str(detail["line_number"]) for detail in details)
