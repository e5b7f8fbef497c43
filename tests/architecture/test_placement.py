"""Places: what is installed, what is checked, and that no file stands where no rule looks.

Compares the folders with pyproject.toml, .importlinter and the configuration of the type checker.
"""

from __future__ import annotations

import configparser
import tomllib

from tests.architecture.sources import PACKAGES, PROGRAMS, ROOT, tracked_files

# Folders that hold Python and are neither packages nor programs.
OTHER_FOLDERS = {"tests"}

# Top-level names that an installation must not bring: they would shadow or be shadowed.
NEVER_INSTALLED = {"remote", "config", "packaging", "tests", "examples", "bench"}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def package_folders(files: tuple[str, ...]) -> set[str]:
    """Every dotted package that the folders form below the installed top-level names."""
    folders = {name.rsplit("/", maxsplit=1)[0] for name in files if name.endswith(".py") and "/" in name}
    return {folder.replace("/", ".") for folder in folders if folder.split("/")[0] in PACKAGES}


def unplaced_folders(files: tuple[str, ...]) -> set[str]:
    """Top-level places with Python in them that no rule knows."""
    tops = {name.split("/")[0] for name in files if name.endswith(".py")}
    return tops - {*PACKAGES, *PROGRAMS, *OTHER_FOLDERS}


def test_the_listed_packages_are_those_that_exist() -> None:
    assert package_folders(tracked_files()) == set(project()["tool"]["setuptools"]["packages"])


def test_every_package_folder_is_a_package() -> None:
    """A folder without ``__init__.py`` is not seen by import-linter."""
    folders = package_folders(tracked_files())
    assert [name for name in folders if not (ROOT / name.replace(".", "/") / "__init__.py").is_file()] == []


def test_nothing_is_discovered_and_no_common_name_is_installed() -> None:
    packages = project()["tool"]["setuptools"]["packages"]
    assert isinstance(packages, list)
    assert {name.split(".")[0] for name in packages}.isdisjoint(NEVER_INSTALLED)


def test_packaging_is_no_package() -> None:
    assert [name for name in tracked_files() if name.startswith("packaging/") and name.endswith("__init__.py")] == []


def test_every_folder_with_python_in_it_is_placed() -> None:
    assert unplaced_folders(tracked_files()) == set()
    assert unplaced_folders(("libintercom/wire/a.py", "tests/a.py", "tools/b.py", "setup.py")) == {"tools", "setup.py"}


def test_the_import_rules_cover_every_package() -> None:
    rules = configparser.ConfigParser()
    rules.read(ROOT / ".importlinter")
    assert set(rules["importlinter"]["root_packages"].split()) == {*PACKAGES, "remote"}
    assert rules["importlinter"]["include_external_packages"] == "True"


def test_the_strict_type_check_covers_every_package_and_the_support() -> None:
    mypy = project()["tool"]["mypy"]
    with_code = {name.split("/")[0] for name in tracked_files() if name.endswith(".py")}
    remote = {"remote"} & with_code
    assert mypy["strict"] is True
    assert set(mypy["files"]) == {*PACKAGES, *remote, "tests/support"}


def test_the_programs_are_installed_under_their_names() -> None:
    assert project()["project"]["scripts"] == {
        "intercomd": "intercomd.__main__:main",
        "intercomctl": "intercomctl.__main__:main",
        "intercom-remote": "intercomctl.remote:main",
    }


def test_every_package_is_typed() -> None:
    assert [name for name in PACKAGES if not (ROOT / name / "py.typed").is_file()] == []
