"""The hash of a text as its sender wrote it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libintercom.session.hashes import replace_surrogates, text_sha256

# What Node.js printed for these: crypto.createHash("sha256").update(text, "utf8").digest("hex").
IN_JAVASCRIPT = """
const {createHash} = require("node:crypto");
const texts = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map(text => createHash("sha256").update(text, "utf8").digest("hex"))));
"""
TEXTS = ["", "a\r\nb", "\u00e9", "e\u0301", "😀", "\ud83d", "x\udc00\ud800y", "\ud83d\ude00", "\ufeff\u2028"]


def test_nothing_is_normalised():
    assert text_sha256("a\r\nb") == hashlib.sha256(b"a\r\nb").hexdigest()
    assert len({text_sha256(text) for text in ("a\r\nb", "a\nb", "\u00e9", "e\u0301", "\u00e9 ")}) == 5


@pytest.mark.needs("node")
def test_a_javascript_peer_hashes_the_same():
    node = shutil.which("node")
    assert node
    ran = subprocess.run(
        [node, "-e", IN_JAVASCRIPT], input=json.dumps(TEXTS), capture_output=True, text=True, check=True
    )
    assert [text_sha256(text) for text in TEXTS] == json.loads(ran.stdout)


@given(st.text(st.characters()))
def test_every_lone_surrogate_and_nothing_else_is_replaced(text):
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert replace_surrogates(text) == re.sub("[\ud800-\udfff]", "\ufffd", joined)
