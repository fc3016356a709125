"""Save a fitted estimator to a file of our format, and load it: no pickle, all is checked."""

from __future__ import annotations

import inspect
import logging
from numbers import Integral
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .. import store
from ..estimators._fit import sum_of
from ..store.container import reading
from ..store.values import Decoder, Encoder, StoreError
from .registry import ESTIMATORS, REGISTRY

logger = logging.getLogger("cutplane")

# Parameters that have a meaning only in the process that fitted the model.
NOT_STORED = ("callback", "checkpoint", "executor")


def save_model(model: Any, path: Any) -> None:
    """Save a fitted estimator.

    Parameters
    ----------
    model : estimator
        A fitted estimator of cutplane.
    path : path, '-' or binary file
        The new file appears when everything is written; until then an old file stays. If the name
        ends in .gz, .bz2 or .xz, the file is compressed. '-' is standard output.

    Raises
    ------
    ValueError
        If the model holds something that cannot be stored: a problem or a kernel of your
        own that is not registered, see :func:`cutplane.models.register`.

    Notes
    -----
    The file holds the parameters and all fitted attributes, also ``results_`` with their traces. It
    does not hold ``callback``, ``checkpoint``, ``executor``, the data of a warm start, a random
    generator, or a splitter for ``cv``.

    Examples
    --------
    >>> import os
    >>> import cutplane
    >>> model = cutplane.LinearSVC().fit([[0.0], [1.0]], ["no", "yes"])
    >>> cutplane.save_model(model, "small.model")
    >>> cutplane.load_model("small.model").predict([[2.0]])
    array(['yes'], dtype='<U3')
    >>> os.remove("small.model")
    """
    kind = type(model).__name__
    if hasattr(model, "best_estimator_"):
        raise ValueError(f"a {kind} cannot be saved; save its best_estimator_")
    if ESTIMATORS.get(kind) is not model.__class__:
        raise ValueError(f"only cutplane's own estimators can be saved, got {kind}")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"this {kind} is not fitted; call fit before save_model") from None
    encoder = Encoder(REGISTRY)
    parameters = model.get_params(deep=False)
    content: dict[str, dict[str, Any]] = {"parameters": {}, "attributes": {}}
    for name, value in parameters.items():
        # A generator of random numbers or of folds has a meaning only in this process, too.
        generator = name in ("random_state", "cv") and not isinstance(value, Integral | None)
        if name not in NOT_STORED and not generator:
            content["parameters"][name] = _encoded(encoder, kind, name, value)
    for name, value in model.__getstate__().items():
        # Other attributes belong to scikit-learn: its version, callbacks, metadata requests.
        if name not in parameters and (name.endswith("_") or name in _PRIVATE):
            content["attributes"][name] = _encoded(encoder, kind, name, value)
    store.write(path, kind, content, encoder.arrays)


_PRIVATE = ("_gamma", "_shape", "_samplings", "_n_features_out")


def _encoded(encoder: Encoder, kind: str, name: str, value: Any) -> Any:
    try:
        return encoder.encode(value)
    except StoreError as error:
        advice = "; register it with cutplane.models.register" if "array" not in str(error) else ""
        if name in ("problem", "problem_"):
            thing = f"{name} of this {kind} is or holds {error}"
        else:
            thing = f"{name} of this {kind} is {error}"
        raise ValueError(thing + advice) from None


def load_model(path: Any) -> Any:
    """Load an estimator that :func:`save_model` saved.

    Parameters
    ----------
    path : path, '-' or binary file
        A name that ends in .gz, .bz2 or .xz is decompressed; '-' is standard input.

    Returns
    -------
    model : estimator
        It predicts the same as the saved estimator, to the last bit.

    Raises
    ------
    ValueError
        If the file is damaged, from a version that this one cannot read, or no model. Loading runs
        no code from the file. Arrays take as much memory as in the file, other values a few times
        as much.
    """
    file = store.read(path)
    header = file.header
    name, kind = header.name, header.kind
    if kind == "checkpoint":
        raise ValueError(
            f"{name} is a checkpoint, not a model: fit with checkpoint={name!r} to go on from it"
        )
    if kind not in ESTIMATORS:
        raise ValueError(
            f"{name} holds a {kind!r:.40}, written by {header.writer:.40}; this version does not "
            "know it"
        )
    _refuse_outdated(header)
    decoder = Decoder(file.arrays, REGISTRY)
    with reading(name):
        parameters = _decoded(decoder, header.content["parameters"])
        attributes = _renamed(_decoded(decoder, header.content["attributes"]))
    estimator = ESTIMATORS[kind]
    unknown = sorted(set(parameters) - set(inspect.signature(estimator).parameters))
    if unknown:
        raise ValueError(
            f"{name}, written by {header.writer:.40}, has parameters of {kind} that this "
            f"version does not know: {', '.join(unknown):.200}"
        )
    with reading(name, "its content does not fit together"):
        model = estimator(**parameters)
        for attribute, value in attributes.items():
            fitted = attribute.isidentifier() and attribute.endswith("_")
            if not (fitted or attribute in _PRIVATE) or attribute.startswith("__"):
                raise ValueError(f"{attribute!r:.40} is no fitted attribute")
            setattr(model, attribute, value)
        check_model(model)
    return model


def _refuse_outdated(header: store.Header) -> None:
    """Refuse an intact file of an older version if this version cannot use its model."""
    content = header.content if isinstance(header.content, dict) else {}
    for attribute, change in getattr(ESTIMATORS[header.kind], "_since", {}).items():
        attributes = content.get("attributes")
        if isinstance(attributes, dict) and attribute not in attributes:
            raise ValueError(
                f"{header.name} holds a {header.kind} that {header.writer:.40} wrote before "
                f"{change}; this version cannot use it: fit the model again"
            )


def _decoded(decoder: Decoder, values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise ValueError("expected names and values")
    return {name: decoder.decode(value) for name, value in values.items()}


def _renamed(attributes: dict[str, Any]) -> dict[str, Any]:
    """Give attributes their present names: older files have one or more results as ``result_``."""
    found = attributes.pop("result_", None)
    if found is None:
        return attributes
    results = found if isinstance(found, list) else [found]
    certificates = [result.certificate for result in results]
    return {
        **attributes,
        "results_": results,
        "certificates_": certificates,
        "certificate_": sum_of(certificates),
        "n_iter_": max(result.n_iter for result in results),
    }


def check_model(model: Any) -> None:
    """Check that a loaded model has attributes as a fit makes them, because compiled code needs it.

    Otherwise raise a ValueError that names the attribute.
    """
    model._check_common()
    model._check_attributes()
    if hasattr(model, "feature_names_in_"):
        names = model.feature_names_in_
        if getattr(names, "shape", None) != (model.n_features_in_,) or names.dtype != object:
            raise ValueError("feature_names_in_ must hold a name per feature")
