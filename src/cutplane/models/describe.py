"""A description of a model file, from its header alone."""

from __future__ import annotations

from typing import Any

from .. import store
from ..estimators.checkpoint import KIND as CHECKPOINT
from ..result import Certificate
from ..store.container import reading
from ..store.values import Decoder


def describe(path: Any) -> dict[str, Any]:
    """Describe a model file or a checkpoint without loading its arrays.

    Parameters
    ----------
    path : path, '-' or binary file

    Returns
    -------
    description : dict
        All values have JSON's types, but numbers may be infinite:

        - ``kind``: name of the estimator, or 'checkpoint'.
        - ``version``: version of the format; ``writer``: program and version that wrote the file.
        - ``parameters``: parameters of the estimator, by name.
        - ``certificate``: dict of ``primal, dual, gap, relative_gap, kind``; a list of dicts
          for several problems; None if there is no certificate.
        - ``status``, ``n_iter``: how the fit ended and its iterations; lists for several problems.
        - ``classes``: list of labels; None if there are no classes, or hundreds of them.
        - ``n_features``: int.
        - ``sizes``: dict of the shapes of all arrays, by attribute; its entry ``bytes`` is the size
          of the file before compression.
        - ``digest``: SHA-256 that identifies the content.

        The description of a checkpoint also has ``estimator``, the name of the estimator, and
        ``solved``, the number of problems that are done. Its certificate and iterations belong to
        the problem that was being solved.
    """
    header = store.read_header(path)
    with reading(header.name):
        return _checkpoint(header) if header.kind == CHECKPOINT else _model(header)


def _common(header: store.Header) -> dict[str, Any]:
    return {
        "kind": header.kind,
        "version": header.version,
        "writer": header.writer,
        "digest": header.digest,
    }


def _model(header: store.Header) -> dict[str, Any]:
    attributes = header.content["attributes"]
    listed = attributes.get("results_", attributes.get("result_"))  # the latter in older files
    listed = listed if isinstance(listed, list) else [listed]
    single = len(listed) == 1
    known = [result for result in listed if result is not None]
    decode = Decoder(()).decode
    answer = {
        "certificate": [_certificate(decode(result["certificate"])) for result in known],
        "status": [result["status"]["value"] for result in known],
        "n_iter": [result["n_iter"] for result in known],
    }
    sizes = {k: v["shape"] for k, v in attributes.items() if isinstance(v, dict) and "shape" in v}
    return {
        **_common(header),
        "parameters": {k: _plain(v) for k, v in header.content["parameters"].items()},
        **{k: (v[0] if v else None) if single else v for k, v in answer.items()},
        "classes": _labels(attributes.get("classes_")),
        "n_features": attributes.get("n_features_in_"),
        "sizes": {**sizes, "bytes": header.size},
    }


def _checkpoint(header: store.Header) -> dict[str, Any]:
    content = {key: value for key, value in header.content["dict"]}
    state = dict(content["state"]["dict"])
    sizes: dict[str, Any]
    if "beta" in state:  # a kernel machine
        primal, n_iter = _plain(state["primal"]), state["n_iter"]
        sizes = {"dual point": state["beta"]["shape"]}
    else:
        best, trace = dict(state["best"]["dict"]), state["trace"]
        primal = _plain(best["primal"])
        n_iter = len(trace["number"]) if "number" in trace else 0
        cuts = dict(state["bundle"]["dict"])["offsets"]["shape"][0] - 1
        sizes = {"w": best["w"]["shape"], "cuts": cuts}
    return {
        **_common(header),
        "estimator": content["estimator"],
        "parameters": {key: value for key, value in content["parameters"]["dict"]},
        "certificate": _certificate(Certificate(primal, min(primal, _plain(state["dual"])))),
        "status": None,
        "n_iter": n_iter,
        "solved": len(content["solved"]),
        "sizes": {**sizes, "bytes": header.size},
    }


def _certificate(certificate: Certificate) -> dict[str, Any]:
    names = ("primal", "dual", "gap", "relative_gap", "kind")
    return {name: getattr(certificate, name) for name in names}


def _plain(value: Any) -> Any:
    """An encoded value in JSON's types. Arrays become "…"."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "dict" in value:
        return {str(_plain(key)): _plain(item) for key, item in value["dict"]}
    if "tuple" in value:
        return _plain(value["tuple"])
    return next((value[key] for key in ("object", "function", "record") if key in value), "…")


def _labels(value: Any) -> list[Any] | None:
    """The labels, if the header holds them: texts, or a few numbers."""
    keys = ("strings", "objects", "numbers")
    return next((_plain(value[k]) for k in keys if isinstance(value, dict) and k in value), None)
