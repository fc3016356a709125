"""The message for a mistake in an svmlight file: where it is, what is wrong, what to do.

The compiled loop returns only a position and a code. The functions here look at the text again to
find the rest. This happens once, because the first mistake ends the reading.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...loops import svmlight as loops
from ..rows import MOST_FEATURES

if TYPE_CHECKING:
    from .parse import Options, Piece

_SHOWN = 40  # characters of a token that a message repeats
_TOKEN = re.compile(rb"[^ \t\r\n#]*")
_PLAIN_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan(\(.*\))?|inf|infinity)", re.IGNORECASE)


def mistake(
    name: str, piece: Piece, options: Options, code: int | None = None, position: int | None = None
) -> ValueError:
    """The error for the mistake that a piece has recorded, or for the given code and position."""
    code = int(piece.state[loops.CODE]) if code is None else code
    position = int(piece.state[loops.POSITION]) if position is None else position
    position = max(position, 0)
    text = bytes(piece.buffer[: piece.end])
    message, skipped = _explain(text, position, code, int(piece.state[loops.PREVIOUS]), options)
    position += skipped
    breaks = text.count(b"\n", 0, position)
    line = piece.line + breaks
    column = position - text.rfind(b"\n", 0, position) if breaks else piece.column + position
    if code == loops.SOME_QIDS:  # the mistake is in the entire row, so point to its first column
        column = 1
    return ValueError(f"{name}:{line}:{column}: {message}")


def _show(token: bytes) -> str:
    """A token as a message shows it: printable, and not too long."""
    text = repr(token[: _SHOWN + 1])[1:]
    return text if len(token) <= _SHOWN else f"{text[: _SHOWN + 1]}…'"


def _strange(token: bytes) -> str | None:
    """The message for a token that is not even text; None if it is text."""
    if b"\0" in token:
        return "there is a NUL byte; is the file damaged, or not text?"
    if any(byte < 32 or byte > 126 for byte in token):
        return (
            f"{_show(token)} is not svmlight text; is the file binary, compressed or in another "
            "encoding?"
        )
    return None


def _number(token: bytes, largest: float) -> str:
    """Why a token is not accepted as a number."""
    shown = _show(token)
    if _NOT_FINITE.fullmatch(token):
        return f"{shown} is not finite; remove it or replace it by a number"
    if _PLAIN_NUMBER.fullmatch(token):
        kind = "float64" if largest > 1e300 else "float32"
        return f"{shown} is beyond the largest {kind}; rescale the data"
    if b"," in token:
        return f"{shown} is not a number; the decimal mark is a point, and there is no other"
    if b"_" in token:
        return f"{shown} is not a number; write it without '_'"
    if re.match(rb"[+-]?0[xX]", token):
        return f"{shown} is not a decimal number; write it without '0x'"
    if re.fullmatch(rb"[+-]?[\d.]+[dDqQ][+-]?\d+", token):
        return f"{shown} is not a number; write the exponent with 'e'"
    return f"{shown} is not a number"


def _label(token: bytes) -> str:
    if b":" in token:
        return f"the row begins with {_show(token)}; a label must come first"
    remedy = ""
    if not re.match(rb"[+-]?[.\d]", token) and not _NOT_FINITE.fullmatch(token):
        remedy = "; labels are numbers: give each class one"
    elif b"," in token:
        remedy = "; several labels per row cannot be read"
    return f"label {_number(token, 1e308)}{remedy}"


def _pair(token: bytes) -> str:
    """Why a token is not index:value."""
    index, colon, _ = token.partition(b":")
    if not colon:
        return f"{_show(token)} has no ':'; expected index:value"
    if not index:
        return f"{_show(token)} has no index before ':'; expected index:value"
    if re.fullmatch(rb"-\d+", index):
        return f"index {index.decode()} is negative; indices start at 0 or 1"
    return f"index {_show(index)} is not a whole number; expected index:value"


def _qid(token: bytes) -> str:
    text = token.removeprefix(b"qid:")
    if re.fullmatch(rb"\d+", text):
        return f"qid {_show(text)} is beyond the largest 64-bit integer; renumber the queries"
    if re.fullmatch(rb"-\d+", text):
        return f"qid {_show(text)} is negative; queries are numbered from 0"
    return f"qid {_show(text)} is not a whole number"


def _cost(token: bytes) -> str:
    if _PLAIN_NUMBER.fullmatch(token) and token.startswith(b"-"):
        return f"cost {_show(token)} is negative; a cost is a factor ≥ 0"
    return f"cost {_number(token, 1e308)}"


def _index_range(index: int, code: int, options: Options) -> str:
    if code == loops.TOO_SMALL:
        return "index 0 in a file with indices from 1; pass zero_based=True if they start at 0"
    start = "" if options.first is None else f" counted from {options.first}"
    if options.n_features is not None and index <= options.largest_index(options.max_features):
        return (
            f"index {index}{start} is beyond n_features={options.n_features}; raise it, or pass "
            "unseen='ignore' to leave such features out"
        )
    remedy = " or raise max_features" if options.max_features < MOST_FEATURES else ""
    return f"index {index}{start} is beyond max_features={options.max_features}; correct it{remedy}"


def _explain(
    text: bytes, position: int, code: int, previous: int, options: Options
) -> tuple[str, int]:
    """What is wrong at ``position``, and how many characters after it the mistake begins."""
    match code:
        case loops.SOME_QIDS:
            return "a qid on some lines only; give every line one, or none", 0
        case loops.NUL_IN_COMMENT:
            return "there is a NUL byte; is the file damaged, or not text?", 0
        case loops.STRAY_RETURN:
            return "a carriage return inside a line; lines end in \\n or \\r\\n", 0
    token = _TOKEN.match(text, position)[0]  # type: ignore[index]
    strange = _strange(token)
    if strange is not None:
        return strange, 0
    match code:
        case loops.BAD_LABEL:
            return _label(token), 0
        case loops.BAD_TOKEN:
            return _pair(token), 0
        case loops.BAD_QID:
            return _qid(token), 0
        case loops.SECOND_QID:
            return "a second qid in one row; keep one", 0
        case loops.SECOND_COST:
            return "a second cost in one row; keep one", 0
    key, colon, value = token.partition(b":")
    skipped = len(key) + 1 if colon else 0
    value = value if colon else token
    if code == loops.BAD_COST:
        return _cost(value), skipped
    if code == loops.BAD_VALUE:
        if not value:
            return f"{_show(token)} has no value after ':'; expected index:value", 0
        if b":" in value:
            return f"{_show(token)} has more than one ':'; expected index:value", 0
        return f"value {_number(value, options.largest_value)}", skipped
    index = int(key)
    match code:
        case loops.REPEATED:
            return f"index {index} occurs twice in this row; keep one", 0
        case loops.DESCENDING:
            return f"index {index} follows {previous}; indices must increase (or pass sort=True)", 0
    return _index_range(index, code, options), 0


def second_occurrence(text: bytes, row: int, index: int) -> int:
    """The position in ``text`` at which ``index`` occurs a second time in the row ``row``."""
    start = 0
    for line in text.split(b"\n"):
        body = line.partition(b"#")[0].split()
        if body:
            if row == 0:
                break
            row -= 1
        start += len(line) + 1
    found = re.finditer(rb"(?<=[ \t])0*%d:" % index, line)
    next(found)
    return start + next(found).start()
