"""Words of an observation: general ones are kept, ids left out, and each scoped by where it stands."""

import pytest

from policies.tokens import line_tokens, tokens


def of(line: str) -> set[str]:
    return set(line_tokens(line))


def test_a_short_text_is_one_token_under_its_field_and_its_words() -> None:
    """`scope.key=value`, where the scope is what the line comes from."""
    assert of('get_order {"status": "late"}') == {"get_order", "get_order.status=late"}
    assert of('get_order {"status": "In transit"}') == {
        "get_order",
        "get_order.status=In transit",
        "get_order.status:in",
        "get_order.status:transit",
    }


def test_a_long_text_is_its_words() -> None:
    """More than three words are no category."""
    found = of('news {"text": "A storm has closed the port"}')
    assert {"news.text:storm", "news.text:closed", "news.text:port"} <= found
    assert not any("=" in t for t in found)


def test_the_same_value_elsewhere_is_another_token() -> None:
    """Scope and key say what a value is about."""
    assert not of('orders {"status": "late"}') & of('lots {"status": "late"}')
    assert not of('orders {"a": "late"}') - {"orders"} & of('orders {"b": "late"}')


@pytest.mark.parametrize(
    ("number", "magnitude"),
    [
        ("0", "0"),
        ("0.0", "0"),
        ("1", "1e0 low"),
        ("3.1", "1e0 low"),
        ("3.2", "1e0 high"),
        ("9.9", "1e0 high"),
        ("9.99", "1e1 low"),
        ("10", "1e1 low"),
        ("-40", "-1e1 high"),
        ("0.05", "1e-2 high"),
        ("2.5e6", "1e6 low"),
        ("1e400", "inf"),
    ],
)
def test_a_number_is_its_sign_and_magnitude(number: str, magnitude: str) -> None:
    """Two steps a decade: 3.1 and 3.2 differ, 40 and 45 do not. One that is too large for a float is that."""
    assert f"stock.count={magnitude}" in of(f'stock {{"count": {number}}}')


def test_truth_values_and_null_are_tokens() -> None:
    """Absence is a finding, too."""
    assert of('lot {"blocked": true, "reason": null}') == {"lot", "lot.blocked=true", "lot.reason=null"}


@pytest.mark.parametrize("text", ["PO-4711", "2026-03-01", "SUP7", "4711"])
def test_ids_and_dates_are_left_out(text: str) -> None:
    """They are new in every case, and say nothing in general."""
    assert not any(c.isdigit() for t in of(f'get_order {{"id": "{text}"}}') for c in t)


def test_words_beside_an_id_are_kept() -> None:
    """The id goes, the text it stands in stays."""
    assert {"mail.text:lot", "mail.text:is", "mail.text:broken"} <= of('mail {"text": "lot X77 is broken"}')


def test_who_said_it_is_left_out() -> None:
    """A note is the same finding whoever handed it over."""
    assert line_tokens('[triage] get_order {"status": "late"}') == line_tokens('get_order {"status": "late"}')


def test_text_that_is_no_json_object_is_read_as_text() -> None:
    """A bare answer, a list of names, or a verdict."""
    assert "listen=wheezing" in of('listen "wheezing"')
    assert {"lots=red", "lots=blue"} <= of('lots ["red", "blue"]')
    assert "world=over" in of("world over")


def test_a_bare_answer_of_a_call_with_arguments_is_read() -> None:
    """`tool {arguments} answer`: two answers differ, be they texts, numbers, truth values or lists."""
    assert of('listen {"to": "lungs"} "wheezing"') == {"listen", "listen.to=lungs", "listen=wheezing"}
    assert "weigh=1e1 high" in of('weigh {"times": 2} [70.0, 70.5]')
    assert "count=1e0 high" in of("count 5")
    assert "open=true" in of('open {"door": "left"} true')
    assert of("late") == {"late"}


def test_arguments_of_a_call_stand_under_its_tool() -> None:
    """`tool {arguments} answer`: both are seen."""
    assert {"listen.to=heart"} <= of('listen {"to": "heart"} "clear"')


def test_nested_fields_are_found() -> None:
    """By their own key."""
    assert "orders.status=late" in of('orders {"rows": [{"status": "late"}, {"status": "late"}]}')


@pytest.mark.parametrize(
    "line", ["", " ", "{}", '"', '{"a": "\\"}', "[a] ", "\\", '{"' + "x" * 500 + '": 1}', "ñ {“a”: 1}"]
)
def test_any_line_has_tokens_and_each_once(line: str) -> None:
    """Nothing an agent or tool writes breaks the features."""
    found = line_tokens(line)
    assert len(found) == len(set(found))


def test_a_texts_tokens_are_those_of_its_lines() -> None:
    """So that a line can be read once and remembered."""
    assert tokens('case {"a": "x"}\nnews "y"') == [*line_tokens('case {"a": "x"}'), *line_tokens('news "y"')]
