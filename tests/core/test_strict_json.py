"""JSON that readers would read differently is refused in one sentence."""

import json

import pytest

from prudent.core.strict_json import parsed


def test_what_json_writes_is_read():
    assert parsed('"\\ud83d\\ude00"') == "\U0001f600"
    values = {"a": [1, -2.5, "é", None, True, 10**299], "b": {"a": {}}}
    assert parsed(json.dumps(values)) == values
    assert parsed(json.dumps(values).encode()) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON can be read"),
        (b"\xff\xfe\xfd", "no JSON can be read"),
        ("[" * 10**5, "it nests too deeply"),
        ('{"a": {"b": 1, "b": 2}}', "'b' is given twice"),
        ('["\\uD800"]', "half a character"),
        (b'{"\\udfff": 1}', "half a character"),
        ("[NaN]", "NaN is no JSON"),
        ("[-Infinity]", "-Infinity is no JSON"),
        ("1" * 301, "a number has 301 digits"),
        ("1" * 5000, "a number has 5000 digits"),
        ("-1e999", "the number -1e999 is beyond all doubles"),
    ],
)
def test_other_texts_are_refused_in_one_sentence(text, message):
    with pytest.raises(ValueError, match=message) as refused:
        parsed(text)
    assert "\n" not in str(refused.value)
