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
            "--format", "(default: by the suffix .onnx, .csv or .json of OUT)", choices=FORMATS
        ),
    )
}


def run(args: argparse.Namespace) -> int:
    """Export; returns the exit code."""
    form = args.format or SUFFIXES.get(Path(args.out).suffix.lower())
    if form is None:
        raise UsageError(f"what should {args.out} be? Give --format {', '.join(FORMATS)}")
    check_target(args.out, args.model, binary=form == "onnx")
    model, _ = load_any(args.model)
    if form in ("csv", "json"):
        weights = Weights(model)
        text = weights.csv() if form == "csv" else weights.json()
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


class Weights:
    """The weights of a linear model by feature and output.

    Parameters
    ----------
    model : estimator
    """

    def __init__(self, model: Any) -> None:
        name = type(model).__name__
        chain = hasattr(model, "transitions_")
        if not hasattr(model, "coef_") or not (chain or hasattr(model, "intercept_")):
            raise CommandError(f"csv and json are for linear scores, and a {name} is none")
        coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
        self.estimator = name
        self.coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
        names = getattr(model, "feature_names_in_", None)
        self.features = (
            [str(k + 1) for k in range(self.coef.shape[1])]
            if names is None
            else [str(entry) for entry in names]
        )
        self.classes = [
            label_text(label) for label in getattr(model, "classes_", np.array([])).tolist()
        ]
        self.outputs = self._outputs(model)
        # What is added to the scores besides: the bias, or weights of labels in a row.
        self.others: dict[str, np.ndarray] = {}
        self.chain: dict[str, np.ndarray] = {}
        if not chain:
            self.others["(bias)"] = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
            return
        self.chain = {
            key: getattr(model, f"{key}_")
            for key in ("transitions", "begin", "finish", "second_transitions")
            if hasattr(model, f"{key}_")
        }
        names = self.classes
        self.others |= {f"(after {k})": model.transitions_[i] for i, k in enumerate(names)}
        if model.boundaries:
            self.others |= {"(first)": model.begin_, "(last)": model.finish_}
        if "second_transitions" in self.chain:
            for i, first in enumerate(names):
                for j, second in enumerate(names):
                    self.others[f"(after {first}, {second})"] = model.second_transitions_[i, j]

    def _outputs(self, model: Any) -> list[str]:
        rows = len(self.coef)
        if rows == len(self.classes):
            return self.classes
        if rows > 1 and getattr(model, "loss", "") == "quantile":
            return [f"{quantile:g}" for quantile in model.quantile]
        return ["weight"] if rows == 1 else [str(k + 1) for k in range(rows)]

    def csv(self) -> str:
        """CSV text: a line per feature, and one for the bias or each label before."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["feature", *self.outputs])
        for name, values in zip(self.features, self.coef.T.tolist(), strict=True):
            writer.writerow([name, *map(repr, values)])
        for name, values in self.others.items():
            writer.writerow([name, *map(repr, values.tolist())])
        return file.getvalue()

    def json(self) -> str:
        """One JSON object."""
        content = {
            "estimator": self.estimator,
            "classes": self.classes,
            "outputs": self.outputs,
            "features": self.features,
            "coef": self.coef.tolist(),
        }
        if self.chain:
            content |= {name: values.tolist() for name, values in self.chain.items()}
        else:
            content["intercept"] = self.others["(bias)"].tolist()
        return json.dumps(content) + "\n"
