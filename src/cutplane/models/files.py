"""Save a fitted estimator to a file of our own, and load it: no pickle, everything checked."""

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

# Parameters and attributes that belong to the process that fitted the model.
NOT_STORED = ("callback", "checkpoint", "executor")


def save_model(model: Any, path: Any) -> None:
    """Save a fitted estimator.

    Parameters
    ----------
    model : estimator
        One of ours, fitted.
    path : path, '-' or binary file
        A path appears when everything is written, and what was there stays until then. A name
        that ends in .gz, .bz2 or .xz is compressed; '-' is standard output.

    Raises
    ------
    ValueError
        If the model holds something that cannot be stored: a problem or a kernel of your
        own that is not registered, see :func:`cutplane.models.register`.

    Notes
    -----
    Stored are the parameters and all fitted attributes, ``results_`` with their traces included.
    ``callback``, ``checkpoint`` and ``executor`` are not, nor what a warm start keeps, nor a
    random generator, nor a splitter for ``cv``.

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
        raise ValueError(f"of a search save the model: best_estimator_ of this {kind}")
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
        # A generator of random numbers or of folds belongs to the process, too.
        generator = name in ("random_state", "cv") and not isinstance(value, Integral | None)
        if name not in NOT_STORED and not generator:
            content["parameters"][name] = _encoded(encoder, kind, name, value)
    for name, value in model.__getstate__().items():
        # Other names are scikit-learn's: its version, callbacks, requests for metadata.
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
        It predicts the same as the one that was saved, to the last bit.

    Raises
    ------
    ValueError
        If the file is damaged, from another version, or something else. Nothing in a file is
        ever run. Arrays take the memory they have in the file, other values some times that.
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
    """Refuse an intact file of an older version whose model cannot be used any more."""
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
    """Attributes by their names of today: older files have one result or several as ``result_``."""
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
    """Raise a ValueError, naming the attribute, unless a model is as a fit leaves it.

    Compiled code relies on that.
    """
    model._check_common()
    model._check_attributes()
    if hasattr(model, "feature_names_in_"):
        names = model.feature_names_in_
        if getattr(names, "shape", None) != (model.n_features_in_,) or names.dtype != object:
            raise ValueError("feature_names_in_ must hold a name per feature")
