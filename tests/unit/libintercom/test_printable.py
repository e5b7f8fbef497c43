"""What peers' text may do to a person's terminal: nothing, and hide nothing either."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from libintercom.printable import make_line, make_printable

ESC, BEL, RLO, PDI, ZWSP = "\x1b", "\x07", "\u202e", "\u2069", "\u200b"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
ASTRONAUT = "\U0001f469\U0001f3fd\u200d\U0001f680"
RAINBOW = "\U0001f3f3\ufe0f\u200d\U0001f308"
PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
HINDI = "\u0915\u094d\u200d\u0937"
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e007f"

# (text of a peer, what a terminal gets on one line)
CORPUS = [
    (f"{ESC}[31mred{ESC}[0m", "␛[31mred␛[0m"),
    (f"{ESC}]52;c;cm0gLXJm{BEL}", "␛]52;c;cm0gLXJm␇"),
    (f"{ESC}]8;;http://evil{ESC}\\click{ESC}]8;;{ESC}\\", "␛]8;;http://evil␛\\click␛]8;;␛\\"),
    ("\x9b31mC1 CSI", "<U+009B>31mC1 CSI"),
    ("\x9d52;c;x\x9c", "<U+009D>52;c;x<U+009C>"),
    ("over\rwrite", "over␍write"),
    ("back\b\b", "back␈␈"),
    ("nul\x00del\x7f", "nul␀del␡"),
    (f"user{RLO}nimda", "user<U+202E>nimda"),
    (f"\u2066isolated{PDI}", "<U+2066>isolated<U+2069>"),
    ("mark\u200e\u200f\u061c", "mark<U+200E><U+200F><U+061C>"),
    (f"rev{ZWSP}iewer", "rev<U+200B>iewer"),
    ("\ufeffbom\u00adhyphen\u2060", "<U+FEFF>bom<U+00AD>hyphen<U+2060>"),
    ("blank\u3164\u115f", "blank<U+3164><U+115F>"),
    ("a\u2028b\u2029c", "a<U+2028>b<U+2029>c"),
    ("tag\U000e0041\U000e007f", "tag<U+E0041><U+E007F>"),
    (ENGLAND, "\U0001f3f4<U+E0067><U+E0062><U+E007F>"),
    ("x\ufe01\ufe02\U000e0100", "x\ufe01<U+FE02><U+E0100>"),
    ("\ufe0fx", "<U+FE0F>x"),
    ("lone \ud83d end", "lone <U+D83D> end"),
    ("[red]bold[/red] :warning: {x} %s \\e[31m", "[red]bold[/red] :warning: {x} %s \\e[31m"),
    (FAMILY, FAMILY),
    (ASTRONAUT, ASTRONAUT),
    (RAINBOW, RAINBOW),
    (PERSIAN, PERSIAN),
    (HINDI, HINDI),
    ("a\u200db", "a<U+200D>b"),
    ("\u0645\u200db", "\u0645<U+200D>b"),
    ("\U0001f468\u200c\U0001f469", "\U0001f468<U+200C>\U0001f469"),
    ("\u200d", "<U+200D>"),
    ("1\ufe0f\u20e3 ⚠️ naïve 日本語 🇩🇪", "1\ufe0f\u20e3 ⚠️ naïve 日本語 🇩🇪"),
    ("two\nlines\tand a tab", "two␊lines␉and a tab"),
]


@pytest.mark.parametrize(("text", "shown"), CORPUS)
def test_line(text: str, shown: str) -> None:
    assert make_line(text) == shown


@pytest.mark.parametrize(("text", "shown"), CORPUS)
def test_lines_differ_only_in_line_ends_and_tabs(text: str, shown: str) -> None:
    assert make_printable(text) == shown.replace("␊", "\n").replace("␉", "\t")


def test_crlf_is_a_line_end_but_on_one_line_two_pictures() -> None:
    assert make_printable("a\r\nb\rc") == "a\nb␍c"
    assert make_line("a\r\nb") == "a␍␊b"


@pytest.mark.parametrize(("text", "shown"), CORPUS)
def test_cleaning_twice_changes_nothing_more(text: str, shown: str) -> None:
    assert make_line(make_line(text)) == shown


def test_every_code_point_alone_is_harmless() -> None:
    """All of Unicode: what comes out can be encoded and holds no control, format or separator character."""
    for code in range(sys.maxunicode + 1):
        shown = make_line(chr(code))
        shown.encode()
        if shown == chr(code):
            assert unicodedata.category(shown) not in ("Cc", "Cs", "Zl", "Zp"), hex(code)
            # Arabic and other letters' number and verse signs are visible; all other format characters are not.
            assert unicodedata.category(shown) != "Cf" or is_visible_sign(code), hex(code)


def is_visible_sign(code: int) -> bool:
    name = unicodedata.name(chr(code), "")
    return any(word in name for word in ("NUMBER", "SIGN", "MARK", "AYAH", "HIEROGLYPH"))


def test_plain_text_is_returned_as_it_is() -> None:
    text = "plain text"
    assert make_line(text) is text
    assert make_printable(text) is text
