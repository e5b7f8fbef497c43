"""Figures as Prometheus text: names and labels that its parser takes, whatever the broker calls them."""

from __future__ import annotations

from intercomctl.commands.metrics import render


def test_counters_and_gauges_have_their_type_and_value():
    assert list(render({"accepted": 3}, {"heldBytes": 1.5})) == [
        "# TYPE intercom_up gauge",
        "intercom_up 1",
        "# TYPE intercom_accepted_total counter",
        "intercom_accepted_total 3",
        "# TYPE intercom_heldBytes gauge",
        "intercom_heldBytes 1.5",
    ]


def test_an_object_of_numbers_becomes_a_label():
    assert list(render({"refused": {"not_found": 2, 'a"\\\nb': 1}}, {}))[2:] == [
        "# TYPE intercom_refused_total counter",
        'intercom_refused_total{kind="not_found"} 2',
        'intercom_refused_total{kind="a\\"\\\\\\nb"} 1',
    ]


def test_names_become_names_and_what_is_no_figure_is_left_out():
    assert list(render({"a b-c\n": 1, "text": "x", "flag": True, "none": None, "empty": {}}, {"list": [1]}))[2:] == [
        "# TYPE intercom_a_b_c__total counter",
        "intercom_a_b_c__total 1",
    ]
