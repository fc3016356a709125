"""The svmlight format once more, in plain Python: slow, and as short as can be."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus" / "svmlight"


@dataclass
class Content:
    """Rows as lists; indices as they stand in the file."""

    labels: list[float] = field(default_factory=list)
    rows: list[list[tuple[int, float]]] = field(default_factory=list)
    qids: list[int | None] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)


def number(text: bytes) -> float:
    if not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError(text)
    return float(text)


def whole(text: bytes, most: int) -> int:
    if not re.fullmatch(rb"\d+", text) or int(text) > most:
        raise ValueError(text)
    return int(text)


def parse(text: bytes, *, least: int = 0, most: int = 2**31 - 1, sort: bool = False) -> Content:
    """What is in the text, or ValueError."""
    content = Content()
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        body, mark, comment = line.partition(b"#")
        if not mark:
            body = body.removesuffix(b"\r")
        if b"\0" in line or b"\r" in body:
            raise ValueError(line)
        tokens = re.findall(rb"[^ \t]+", body)
        if not tokens:
            continue
        row: list[tuple[int, float]] = []
        qid = cost = None
        label = number(tokens[0])
        for token in tokens[1:]:
            key, colon, value = token.partition(b":")
            if not colon or (key == b"qid" and qid is not None):
                raise ValueError(token)
            if key == b"qid":
                qid = whole(value, 2**63 - 1)
            elif key == b"cost":
                if cost is not None or number(value) < 0:
                    raise ValueError(token)
                cost = number(value)
            else:
                row.append((whole(key, most), number(value)))
        indices = [index for index, _ in row]
        increasing = sorted(set(indices)) == indices
        if min(indices, default=least) < least or not (increasing or sort):
            raise ValueError(line)
        if len(set(indices)) < len(indices):
            raise ValueError(line)
        content.labels.append(label)
        content.rows.append(sorted(row))
        content.qids.append(qid)
        content.costs.append(1.0 if cost is None else cost)
        content.comments.append(comment.decode("utf-8", "backslashreplace").strip())
    if not content.rows or len({qid is None for qid in content.qids}) > 1:
        raise ValueError("no examples, or some qids")
    return content


# -- texts that are nearly right ----------------------------------------------

PARTS = [
    *(b"1 2 3 10 4 0 7:1 1:2 2:.5 3:1e5 12:-0.25 9:1E-7 1:1 qid:1 qid:2 cost:2 cost:0.5").split(),
    *(b"qid:-1 qid:9223372036854775807 qid:9223372036854775808 cost:-1 nan inf 1e400").split(),
    *(
        b"5:1e400 5:1e-320 5:nan 5:-inf 1_0 5:0x10 5:1d3 5:2,5 -3:1 0:1 1: :2 1:2:3 : # ## +1"
    ).split(),
    *(b"5:123456789012345678901234567890 5:0.1234567890123456789 5:9007199254740993").split(),
    *(b"2147483647:1 2147483648:1 99999999999999999999:1 00000000001:1 8:00000000000001").split(),
    *(b"8:1.7976931348623157e308 8:1.7976931348623159e308 8:4.9e-324 8:2.4e-324 8:-0 .").split(),
    *[b" ", b"\t", b"  ", b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\0", b"\xef\xbb\xbf", b"\xff"],
    *[b"\n1 1:1 2:2\n", b"\n-1 qid:3 4:4 5:5 # w\n", b" \xc3\xa4", b"e", b"-", b"1" * 25],
]


def random_number(rng: random.Random) -> str:
    """A number of any length and size, written in any way."""
    match rng.randrange(6):
        case 0:
            return str(rng.randrange(100))
        case 1:
            return repr(rng.gauss(0.0, 1.0))
        case 2:
            return f"{rng.uniform(-1e6, 1e6):.{rng.randrange(8)}f}"
        case 3:
            digits = str(rng.randrange(10 ** rng.randrange(1, 40)))
            return f"{digits}e{rng.randrange(-345, 270)}"
        case 4:
            digits = str(rng.randrange(10 ** rng.randrange(1, 25)))
            return f"+{digits}.{'0' * rng.randrange(25)}{rng.randrange(10**6)}"
        case _:
            return repr(rng.uniform(1.0, 10.0) * 10.0 ** rng.randrange(-320, 300))


def random_rows(rng: random.Random) -> bytes:
    """A few right rows."""
    lines = []
    for _ in range(rng.randrange(1, 7)):
        indices = sorted(rng.sample(range(1, rng.choice([12, 10**5, 2**31 - 1])), rng.randrange(9)))
        tokens = [f"{index}:{random_number(rng)}" for index in indices]
        if rng.random() < 0.1:
            tokens.insert(rng.randrange(len(tokens) + 1), f"cost:{abs(rng.gauss(1, 1))!r}")
        label = rng.choice(["1", "-1", "+1", "0", random_number(rng)])
        blank = rng.choice([" ", "  ", "\t", " \t "])
        end = rng.choice(["", "", "", "\r", " ", " # word", "#", " # ä 1:2"])
        lines.append(blank.join([label, *tokens]) + end)
    return "\n".join(lines).encode() + rng.choice([b"", b"\n", b"\n\n", b"\n# end"])


def random_text(rng: random.Random, seeds: list[bytes]) -> bytes:
    """A text of rows, seeds and parts, which may be damaged."""
    kind = rng.random()
    text = bytearray(random_rows(rng) if kind < 0.5 else rng.choice(seeds) if kind < 0.9 else b"")
    if len(text) > 1000:
        start = rng.randrange(len(text))
        text = text[start : start + 1000]
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4, 8, 12])):
        place = rng.randrange(len(text) + 1)
        match rng.randrange(6):
            case 0:
                text[place:place] = rng.choice(PARTS)
            case 1:
                text[place:place] = b" " + rng.choice(PARTS) + b" "
            case 2:
                text += rng.choice(PARTS) + rng.choice([b" ", b"\n"])
            case 3:
                del text[place : place + rng.randrange(4)]
            case 4:
                text[place : place + 1] = bytes([rng.randrange(256)])
            case 5:
                other = rng.randrange(len(text) + 1)
                text[place:place] = text[other : other + rng.randrange(20)]
    return bytes(text)
