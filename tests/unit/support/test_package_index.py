"""tests.support.package_index: what a container is given, from pip's configuration and the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.package_index import discover

if TYPE_CHECKING:
    from pathlib import Path


def test_only_what_leads_to_packages_is_passed_on() -> None:
    listing = "global.index-url='https://index.example/simple'\nglobal.user='true'\ninstall.no-index='0'\n"
    access = discover(listing, {"HTTPS_PROXY": "http://proxy.example:3128", "PIP_TARGET": "/x", "HOME": "/h"})
    assert access.variables == {
        "HTTPS_PROXY": "http://proxy.example:3128",
        "PIP_INDEX_URL": "https://index.example/simple",
        "PIP_NO_INDEX": "0",
    }
    assert access.paths == ()


def test_the_environment_of_pip_wins() -> None:
    listing = ":env:.index-url='https://second.example'\nglobal.index-url='https://first.example'\n"
    assert discover(listing, {}).variables == {"PIP_INDEX_URL": "https://second.example"}


def test_files_that_are_named_are_mounted(tmp_path: Path) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.touch()
    access = discover(f"global.cert='{certificate}'\n", {"SSL_CERT_FILE": str(certificate), "CURL_CA_BUNDLE": "/none"})
    assert access.paths == (str(certificate),)


def test_an_index_of_files_is_mounted_with_what_lies_beside_it(tmp_path: Path) -> None:
    simple = tmp_path / "index" / "simple"
    simple.mkdir(parents=True)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    access = discover(f"global.extra-index-url='file://{simple}\\nfile:///none'\nglobal.find-links='{wheels}'\n", {})
    assert access.variables["PIP_EXTRA_INDEX_URL"] == f"file://{simple} file:///none"
    assert access.paths == (str(simple.parent), str(wheels))


def test_values_stay_out_of_the_command_line() -> None:
    options = discover("global.index-url='https://user:secret@index.example'\n", {}).options()
    assert options == ["--env", "PIP_INDEX_URL"]
