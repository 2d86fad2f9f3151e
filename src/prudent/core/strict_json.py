"""JSON that every reader reads alike."""

from __future__ import annotations

import json
import math
from typing import Any

# Whole numbers of so many digits are doubles still.
MOST_DIGITS = 300


def parsed(text: str | bytes) -> Any:
    """Return the values of a JSON text that every reader would read alike.

    Raises ValueError in one sentence where there is no JSON, where a key is given
    twice, for numbers that are no finite double, for half a character, and for nesting
    without end.

    Examples
    --------
    >>> from prudent.core.strict_json import parsed
    >>> parsed('{"rate": [0.5, 1]}')
    {'rate': [0.5, 1]}
    """
    try:
        values = json.loads(
            text,
            object_pairs_hook=_without_repeats,
            parse_constant=_refuse_constant,
            parse_int=_whole,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON can be read: {error}.") from None
    except UnicodeDecodeError:
        raise ValueError("no JSON can be read: it is no UTF-8.") from None
    except RecursionError:
        raise ValueError("no JSON can be read: it nests too deeply.") from None
    escape = "\\ud" if isinstance(text, str) else b"\\ud"
    if escape in text.lower():  # type: ignore[operator]
        _refuse_halves(values)
    return values


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        raise ValueError(f"{twice!r:.40} is given twice, so that readers would differ.")
    return fields


def _refuse_halves(values: Any) -> None:
    """Refuse half a character, which an escape can write and no text can hold."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text holds half a character (a surrogate).") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON: such numbers are written as text.")


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits, beyond any use.")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits:.40} is beyond all doubles.")
    return number


def text_of_double(value: float) -> str:
    """Write a double as text that gives it back in any language."""
    value = float(value)
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def double_of(text: Any, where: str) -> float:
    """Read what `text_of_double` wrote; ValueError that says `where` no number is."""
    try:
        value = float(text) if isinstance(text, str) else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise ValueError(f"{where} must hold numbers as text, got {text!r:.40}.")
    return value
