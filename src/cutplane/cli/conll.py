"""Files in columns for chains with a template: a token a line, the tag in the last column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .inputs import Table
from .outputs import output_file


def read_tagged(
    name: str, template: str, min_count: int = 1, features: Sequence[str] | None = None
) -> Table:
    """Tokens with their features, tags and sentences.

    ``features`` are those of a model; otherwise all that occur often enough are.
    """
    from ..structured.conll import read_sentences
    from ..structured.named import Template, named_tokens

    form = Template(template)
    found = read_sentences(name)
    found.check_columns(
        form.columns + 1, f"the template needs {form.columns}, and the tag one more"
    )
    tokens = named_tokens(found.tokens, form)
    names = tokens.vocabulary(min_count) if features is None else features
    tags = np.array([columns[-1] for sentence in found.tokens for columns in sentence])
    lengths = [len(sentence) for sentence in found.tokens]
    qid = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    return Table(found.name, tokens.rows(names), tags, qid, names=tuple(names))


def write_tagged(name: str, model: Any, target: str, *, tags_only: bool = False) -> None:
    """Write a file again with one more column, the tags that a model predicts; or only these."""
    from ..structured.conll import read_sentences
    from ..structured.named import Template

    found = read_sentences(name)
    needed = Template(model.template).columns
    found.check_columns(needed, f"the template of the model needs {needed}")
    tags = model.predict(found.tokens)
    lines = [str(tag) for some in tags for tag in some] if tags_only else found.tagged(tags)
    with output_file(target) as file:
        file.write("\n".join(lines).rstrip("\n").encode() + b"\n")
