"""Write a model for other programs: an ONNX graph, the text of SVM-light's svm_classify,
or the weights of a linear model: one per line with the bias last (weights), as a table
of features (csv), or as JSON.

examples:
  cutplane export model model.onnx
  cutplane export --format svmlight model model.txt
  cutplane export model weights.csv
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from .errors import CommandError, ExitCode, UsageError
from .inputs import label_text
from .outputs import check_target, output_file
from .parser import Argument
from .predict import load_any

FORMATS = ("onnx", "svmlight", "weights", "csv", "json")
SUFFIXES = {".onnx": "onnx", ".csv": "csv", ".json": "json"}


FLAGS = {
    "": (
        Argument("MODEL", "File with the model."),
        Argument("OUT", "File to write; - is standard output."),
        Argument(
            "--format",
            "What to write. (default: what the suffix .onnx, .csv or .json of OUT says)",
            choices=FORMATS,
        ),
    )
}


def run(args: argparse.Namespace) -> int:
    """Export; returns the exit code."""
    form = args.format or SUFFIXES.get(Path(args.out).suffix.lower())
    if form is None:
        raise UsageError(f"what should {args.out} be? Give --format, one of {', '.join(FORMATS)}")
    check_target(args.out, args.model, binary=form == "onnx")
    model, _ = load_any(args.model)
    if form in ("csv", "json"):
        content, others = linear_weights(model)
        text = json.dumps(content) + "\n" if form == "json" else _table(content, others)
        with output_file(args.out) as file:
            file.write(text.encode())
        return ExitCode.OK
    from .. import models

    save = {
        "onnx": models.save_onnx,
        "svmlight": models.save_svmlight_model,
        "weights": models.save_weights,
    }[form]
    with output_file(args.out) as file:
        save(model, file)
    return ExitCode.OK


def linear_weights(model: Any) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The weights of a linear model by output and feature, and by name what is added besides.

    That is the bias, or the weights of labels that follow one another.
    """
    name = type(model).__name__
    chain = hasattr(model, "transitions_")
    if not hasattr(model, "coef_") or not (chain or hasattr(model, "intercept_")):
        raise CommandError(f"csv and json are for linear scores, and a {name} is none")
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    classes = [label_text(label) for label in getattr(model, "classes_", np.array([])).tolist()]
    names = getattr(model, "feature_names_in_", None)
    content = {
        "estimator": name,
        "classes": classes,
        "outputs": _outputs(model, classes, len(coef)),
        "features": [str(k) for k in (range(1, coef.shape[1] + 1) if names is None else names)],
        "coef": coef.tolist(),
    }
    if not chain:
        content["intercept"] = np.atleast_1d(model.intercept_).astype(np.float64).tolist()
        return content, {"(bias)": content["intercept"]}
    for key in ("transitions", "begin", "finish", "second_transitions"):
        if hasattr(model, f"{key}_"):
            content[key] = getattr(model, f"{key}_").tolist()
    others = {f"(after {k})": row for k, row in zip(classes, content["transitions"], strict=True)}
    if model.boundaries:
        others |= {"(first)": content["begin"], "(last)": content["finish"]}
    for i, rows in enumerate(content.get("second_transitions", ())):
        for j, row in enumerate(rows):
            others[f"(after {classes[i]}, {classes[j]})"] = row
    return content, others


def _outputs(model: Any, classes: list[str], count: int) -> list[str]:
    """A name for each score."""
    if count == len(classes):
        return classes
    if count > 1 and getattr(model, "loss", "") == "quantile":
        return [f"{quantile:g}" for quantile in model.quantile]
    return ["weight"] if count == 1 else [str(k + 1) for k in range(count)]


def _table(content: dict[str, Any], others: dict[str, list[float]]) -> str:
    """CSV text: a line per feature, and one for the bias or each label before."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["feature", *content["outputs"]])
    writer.writerows(zip(content["features"], *content["coef"], strict=True))
    writer.writerows([name, *values] for name, values in others.items())
    return file.getvalue()
