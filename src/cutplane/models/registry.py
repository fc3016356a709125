"""Classes and functions that a model file may name: ours, and those that users register.

Loading a file imports nothing. A name in a file must be in the lists here.
"""

from __future__ import annotations

import types
from typing import Any, TypeVar

from scipy.sparse import csr_array, csr_matrix

from ..estimators._calibration import Calibration
from ..estimators._sampled import Sampling
from ..estimators.chain_tagger import ChainTagger
from ..estimators.cholesky_features import CholeskyFeatures
from ..estimators.kernel_svc import SVC
from ..estimators.kernel_svr import SVR, OneClassSVM
from ..estimators.linear_svc import LinearSVC
from ..estimators.linear_svr import LinearSVR
from ..estimators.measure_svc import MeasureSVC
from ..estimators.ordinal_svc import OrdinalSVC
from ..estimators.rank_svm import RankSVM
from ..estimators.sampled_svc import SampledCutSVC
from ..estimators.structured_svm import StructuredSVM
from ..result import Certificate, DualIteration, Iteration, SolveResult
from ..store.values import Registry
from ..structured import BinaryProblem, MulticlassProblem, MultilabelProblem
from ..structured.chain import ChainShape

Thing = TypeVar("Thing")

ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(SVC, SVR, ChainTagger, CholeskyFeatures, LinearSVC, LinearSVR, MeasureSVC),
        *(OneClassSVM, OrdinalSVC, RankSVM, SampledCutSVC, StructuredSVM),
    )
}
RECORDS = (Calibration, ChainShape, Sampling)
PROBLEMS = (BinaryProblem, MulticlassProblem, MultilabelProblem)

REGISTRY = Registry({kind.__name__: kind for kind in RECORDS})


def register(thing: Thing, name: str | None = None) -> Thing:
    """Allow a class or function of your own in model files.

    You can save a model with your own problem, or with a kernel that is a function, if you have
    registered this problem or function. To load the model, register it under the same name.

    Parameters
    ----------
    thing : class or function
        Of an object of a registered class the file stores the attributes, which must be plain
        values or arrays.
    name : str, optional
        By default the module and the name of the thing.

    Returns
    -------
    thing
        The same thing, so you can use ``register`` as a decorator.

    Examples
    --------
    >>> import numpy as np
    >>> from cutplane.models import register
    >>> @register
    ... def histogram_kernel(A, B):
    ...     return np.minimum(A[:, None], B).sum(axis=2)
    """
    if not isinstance(thing, type | types.FunctionType):
        raise ValueError(f"only classes and functions can be registered, got {thing!r:.80}")
    label = f"{thing.__module__}.{thing.__qualname__}" if name is None else name
    known = REGISTRY.objects.get(label)
    # If a module is reloaded or a notebook cell runs again, the same name gets a new object.
    of_one_name = known is not None and known.__module__ == thing.__module__
    if known is not None and not (of_one_name and known.__qualname__ == thing.__qualname__):
        raise ValueError(f"{label!r} is registered already, for {known!r}")
    REGISTRY.objects[label] = thing
    return thing


for _problem in PROBLEMS:
    register(_problem, f"cutplane.{_problem.__name__}")

# For skops.io.load(..., trusted=SKOPS_TRUSTED): all our types that a fitted estimator may contain.
SKOPS_TRUSTED: list[str] = sorted(
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in (
        *ESTIMATORS.values(),
        *RECORDS,
        *PROBLEMS,
        Certificate,
        DualIteration,
        Iteration,
        SolveResult,
        csr_array,
        csr_matrix,
    )
)
