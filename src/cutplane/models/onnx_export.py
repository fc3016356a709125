"""Export to ONNX, with the standard operators and in double precision.

    scores = Σ_i coef_i·k(x, x_i) + intercept,    label = classes[argmax or sign of the scores]

ONNX's own operators for SVMs compute in single precision. This export uses operators for products
instead, so a runtime gives the scores of ``decision_function`` up to rounding in double precision.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice
from ..data.files import output
from ..estimators._base import dense

OPSET = 17
IR_VERSION = 8
KERNELS = ("linear", "poly", "rbf", "sigmoid")
INPUTS = ("float32", "float64")


def to_onnx(model: Any, *, input_type: str = "float64") -> Any:
    """A model as an ONNX graph.

    Parameters
    ----------
    model : LinearSVC, LinearSVR, MeasureSVC, SVC, SampledCutSVC, RankSVM, OrdinalSVC, SVR or \
OneClassSVM
        A fitted model with a linear, polynomial, RBF or sigmoid kernel.
    input_type : {'float64', 'float32'}, default='float64'
        Type of the input. The graph computes in double precision with both.

    Returns
    -------
    graph : onnx.ModelProto
        The input ``X`` has the shape (rows, features). The output ``scores`` equals
        ``decision_function``, or ``predict`` for RankSVM, LinearSVR and SVR. For all other models
        the output ``label`` equals ``predict``.

    Notes
    -----
    Needs the package onnx: ``pip install 'cutplane[onnx]'``.
    """
    check_choice("input_type", input_type, INPUTS)
    maker = _MAKERS.get(type(model).__name__)
    if maker is None:
        raise ValueError(f"{type(model).__name__} cannot be written as ONNX")
    check_is_fitted(model)
    graph = _Graph(input_type)
    scores, label = maker(graph, model, _scores(graph, model))
    return graph.finished(type(model).__name__, int(model.n_features_in_), scores, label)


def save_onnx(model: Any, path: Any, *, input_type: str = "float64") -> None:
    """Write a model as an ONNX file.

    Parameters
    ----------
    model, input_type
        As for :func:`to_onnx`.
    path : path, '-' or binary file
        Written in one step.
    """
    content = to_onnx(model, input_type=input_type).SerializeToString()
    with output(path) as file:
        file.write(content)


class _Graph:
    """Collects nodes and constants, and makes a graph of them."""

    def __init__(self, input_type: str) -> None:
        try:
            import onnx
        except ImportError:
            raise ImportError(
                "to_onnx needs the package onnx: pip install 'cutplane[onnx]'"
            ) from None
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._numbers = itertools.count()
        self._input_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(input_type))
        self.x = self.add("Cast", "X", to=onnx.TensorProto.DOUBLE)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        name = f"{operator.lower()}_{next(self._numbers)}"
        self._nodes.append(
            self._onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        )
        return name

    def constant(self, values: Any) -> str:
        """Add a constant array; texts and numbers."""
        array = np.asarray(values)
        if array.dtype == object:  # labels that are all text or all numbers
            array = np.array(array.tolist())
        if array.dtype.kind in "UT":
            array = array.astype(object)
        name = f"constant_{next(self._numbers)}"
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def cast(self, truth: str, kind: str) -> str:
        """Convert truth values to 0 and 1 of this type."""
        return self.add("Cast", truth, to=getattr(self._onnx.TensorProto, kind))

    def above(self, scores: str, threshold: Any = 0.0) -> str:
        """Whether scores are above thresholds."""
        return self.add("Greater", scores, self.constant(np.asarray(threshold, np.float64)))

    def linear(self, x: str, weights: np.ndarray, bias: np.ndarray) -> str:
        """x·weights + bias."""
        product = self.add("MatMul", x, self.constant(np.ascontiguousarray(weights)))
        return self.add("Add", product, self.constant(bias))

    def column(self, scores: str) -> str:
        """(rows, 1) → (rows,)."""
        return self.add("Reshape", scores, self.constant(np.array([-1], np.int64)))

    def best(self, scores: str) -> str:
        """The column of the largest score."""
        return self.add("ArgMax", scores, axis=1, keepdims=0)

    def labels(self, classes: np.ndarray, codes: str) -> str:
        """The labels that belong to class numbers."""
        return self.add("Gather", self.constant(classes), codes)

    def finished(self, name: str, features: int, scores: str, label: str | None) -> Any:
        """The finished model with its input and outputs."""
        helper = self._onnx.helper
        outputs = []
        for source, target in ((label, "label"), (scores, "scores")):
            if source is not None:
                self._nodes.append(helper.make_node("Identity", [source], [target]))
                outputs.append(self._onnx.ValueInfoProto(name=target))
        shaped = helper.make_tensor_value_info("X", self._input_type, ["rows", features])
        graph = helper.make_graph(self._nodes, name, [shaped], outputs, self._constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="cutplane",
        )
        return self._onnx.shape_inference.infer_shapes(model, strict_mode=True)


# -- models -------------------------------------------------------------------


def _scores(graph: _Graph, model: Any) -> str:
    """The scores of a linear model or of a kernel machine, (rows, outputs)."""
    if hasattr(model, "support_vectors_"):
        return _kernel_scores(graph, model)
    return graph.linear(graph.x, np.atleast_2d(dense(model.coef_)).T, model.intercept_)


def _classes(graph: _Graph, model: Any, scores: str) -> tuple[str, str]:
    """Scores (one per class, or one for two classes) and the label with the largest score.

    If rows have several labels, the label is an indicator matrix of the positive scores.
    """
    if getattr(model, "multilabel_", False):
        return scores, graph.cast(graph.above(scores), "INT64")
    if len(model.classes_) > 2:
        return scores, graph.labels(model.classes_, graph.best(scores))
    scores = graph.column(scores)
    return scores, graph.labels(model.classes_, graph.cast(graph.above(scores), "INT64"))


def _values(graph: _Graph, model: Any, scores: str) -> tuple[str, None]:
    """Scores that are predictions; with several quantiles one column for each."""
    if getattr(model, "loss", "") != "quantile" or np.ndim(model.quantile) == 0:
        return graph.column(scores), None
    if model.crossing == "sort":
        raise ValueError("crossing='sort' cannot be written as ONNX; set crossing='allow' and sort")
    return scores, None


def _ordinal(graph: _Graph, model: Any, score: str) -> tuple[str, str]:
    above = graph.cast(graph.above(score, model.thresholds_), "INT64")
    codes = graph.add("ReduceSum", above, graph.constant(np.array([1], np.int64)), keepdims=0)
    label = graph.labels(model.classes_, codes)
    margins = graph.add("Sub", score, graph.constant(model.thresholds_))
    if len(model.thresholds_) == 1:
        return graph.column(margins), label
    steps = np.triu(np.ones((len(model.thresholds_), len(model.classes_))), 1)
    return graph.add("MatMul", margins, graph.constant(steps)), label


def _kernel_scores(graph: _Graph, model: Any) -> str:
    """Σ coef·k(x, support vector) + intercept, (rows, outputs)."""
    if model.kernel not in KERNELS:
        raise ValueError(f"a kernel {model.kernel!r:.80} cannot be written as ONNX")
    vectors = model.support_vectors_
    vectors = vectors.toarray() if scipy.sparse.issparse(vectors) else np.asarray(vectors)
    vectors = vectors.astype(np.float64)
    coef = np.asarray(model._score_coef(), dtype=np.float64)
    if not len(vectors) or model.kernel == "linear":
        return graph.linear(graph.x, (coef @ vectors).T, model.intercept_)
    if model.kernel == "rbf":
        values = _rbf(graph, vectors, graph.constant(float(model._gamma)))
    else:
        # gamma multiplies the vectors, not the product: runtimes would join a product and a factor
        # behind it into one operator, in single precision.
        scaled = float(model._gamma) * vectors.T
        inner = graph.linear(graph.x, scaled, np.array([float(model.coef0)]))
        if model.kernel == "poly":
            values = graph.add("Pow", inner, graph.constant(float(model.degree)))
        else:
            values = graph.add("Tanh", inner)
    return graph.linear(values, coef.T, model.intercept_)


def _rbf(graph: _Graph, vectors: np.ndarray, gamma: str) -> str:
    """exp(−gamma·|x − v|²) from products. Rows are centred at the mean of the vectors, because far
    from the origin |x|² + |v|² − 2<x, v> would cancel."""
    centre = vectors.mean(axis=0)
    vectors = vectors - centre
    x = graph.add("Sub", graph.x, graph.constant(centre))
    axis = graph.constant(np.array([1], np.int64))
    norms = graph.add("ReduceSum", graph.add("Mul", x, x), axis, keepdims=1)
    products = graph.linear(x, -2.0 * vectors.T, np.einsum("ij,ij->i", vectors, vectors))
    distances = graph.add("Add", norms, products)
    return graph.add("Exp", graph.add("Neg", graph.add("Mul", distances, gamma)))


def _svc(graph: _Graph, model: Any, scores: str) -> tuple[str, str]:
    classes = len(model.classes_)
    if classes == 2 or model._one_against_rest():
        return _classes(graph, model, scores)
    first, second = np.array(list(itertools.combinations(range(classes), 2))).T
    for_first, for_second = np.eye(classes)[first], np.eye(classes)[second]

    def votes(wins: str) -> str:
        return graph.linear(wins, for_first - for_second, for_second.sum(axis=0))

    best = graph.best(votes(graph.cast(graph.above(scores), "DOUBLE")))
    if model.decision_function_shape == "ovo":
        return scores, graph.labels(model.classes_, best)
    # As scikit-learn: the votes, plus the sum of the scores scaled to less than half a vote.
    not_below = graph.add("Not", graph.add("Less", scores, graph.constant(0.0)))
    total = graph.add("MatMul", scores, graph.constant(for_first - for_second))
    size = graph.add("Add", graph.add("Abs", total), graph.constant(1.0))
    squeezed = graph.add("Div", total, graph.add("Mul", size, graph.constant(3.0)))
    shaped = graph.add("Add", votes(graph.cast(not_below, "DOUBLE")), squeezed)
    return shaped, graph.labels(model.classes_, graph.best(shaped) if model.break_ties else best)


def _one_class(graph: _Graph, model: Any, scores: str) -> tuple[str, str]:
    scores = graph.column(scores)
    outside = graph.cast(graph.add("Less", scores, graph.constant(0.0)), "INT64")
    return scores, graph.labels(np.array([1, -1]), outside)


_MAKERS: dict[str, Any] = {
    "LinearSVC": _classes,
    "LinearSVR": _values,
    "MeasureSVC": _classes,
    "RankSVM": _values,
    "OrdinalSVC": _ordinal,
    "SVC": _svc,
    "SampledCutSVC": _classes,
    "SVR": _values,
    "OneClassSVM": _one_class,
}
