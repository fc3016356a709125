"""Models in other people's formats: the same scores there, and back."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from model_cases import CASES, X, three, y

from cutplane import SVC, LinearSVC, load_svmlight
from cutplane.models import (
    describe,
    load_model,
    load_svmlight_model,
    load_weights,
    save_model,
    save_onnx,
    save_svmlight_model,
    save_weights,
    to_onnx,
)

# Written by hand after the manual: exp(−0.5·|a − b|²), b = −0.25.
KERNEL = b"""\
SVM-light Version V6.02
2 # kernel type
3 # kernel parameter -d
0.5 # kernel parameter -g
1 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
9 # highest feature index
4 # number of training documents
3 # number of support vectors plus 1
-0.25 # threshold b, each following line is a SV (starting with alpha*y)
1.5 1:0.5 3:2 #
-1.5 2:1 9:-0.5 #
"""


def scores(model, rows):
    return (getattr(model, "decision_function", None) or model.predict)(rows)


def text_of(model, save=save_svmlight_model) -> bytes:
    target = io.BytesIO()
    save(model, target)
    return target.getvalue()


# -- SVM-light ----------------------------------------------------------------


def test_a_kernel_model_by_hand():
    model = load_svmlight_model(io.BytesIO(KERNEL))
    assert isinstance(model, SVC) and model.n_features_in_ == 9
    vectors = np.zeros((2, 9))
    vectors[0, [0, 2]], vectors[1, [1, 8]] = (0.5, 2.0), (1.0, -0.5)
    rows = np.random.default_rng(0).normal(size=(20, 9))
    kernel = np.exp(-0.5 * ((rows[:, None] - vectors) ** 2).sum(axis=2))
    expected = kernel @ [1.5, -1.5] + 0.25
    np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-12)
    assert set(model.predict(rows)) <= {-1, 1}


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        (b"0", lambda p, d: p),
        (b"1", lambda p, d: (0.7 * p + 2.0) ** 3),
        (b"3", lambda p, d: np.tanh(0.7 * p + 2.0)),
    ],
)
def test_other_kernels_by_hand(kind, formula):
    text = KERNEL.replace(b"2 # kernel type", kind + b" # kernel type")
    text = text.replace(b"1 # kernel parameter -s", b"0.7 # kernel parameter -s")
    text = text.replace(b"1 # kernel parameter -r", b"2 # kernel parameter -r")
    vectors = np.zeros((2, 9))
    vectors[0, [0, 2]], vectors[1, [1, 8]] = (0.5, 2.0), (1.0, -0.5)
    rows = np.random.default_rng(0).normal(size=(20, 9))
    expected = formula(rows @ vectors.T, None) @ [1.5, -1.5] + 0.25
    found = load_svmlight_model(io.BytesIO(text)).decision_function(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["linear", "linear sparse", "measure", "rank", "rbf", "rbf sparse", "sigmoid"]
)
def test_there_and_back(name, tmp_path):
    case = CASES[name]
    model = case.fitted()
    save_svmlight_model(model, tmp_path / "m.gz")
    other = load_svmlight_model(tmp_path / "m.gz")
    np.testing.assert_allclose(
        other.decision_function(case.X), scores(model, case.X), rtol=1e-12, atol=1e-12
    )
    if name.startswith("linear"):
        np.testing.assert_array_equal(other.coef_, model.coef_)
        np.testing.assert_array_equal(other.intercept_, model.intercept_)
    assert gzip.decompress((tmp_path / "m.gz").read_bytes()).startswith(b"SVM-light Version V6.02")
    save_model(other, tmp_path / "own")
    np.testing.assert_array_equal(
        load_model(tmp_path / "own").decision_function(case.X), other.decision_function(case.X)
    )
    assert describe(tmp_path / "own")["certificate"] is None


def test_poly_and_regression():
    model = SVC(kernel="poly", degree=2, coef0=0.5, gamma=0.3).fit(X, y)
    other = load_svmlight_model(io.BytesIO(text_of(model)))
    np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), rtol=1e-9)
    model = CASES["regression"].fitted()
    other = load_svmlight_model(io.BytesIO(text_of(model)))
    np.testing.assert_allclose(other.decision_function(X), model.predict(X), rtol=1e-9, atol=1e-9)


def test_the_lines_of_a_linear_model():
    model = CASES["linear"].fitted()
    lines = text_of(model).decode().splitlines()
    assert len(lines) == 12
    assert [line.partition(" #")[0] for line in lines[1:10]] == (
        ["0", "3", "1.0", "1.0", "1.0", "empty", "6", "0", "2"]
    )
    assert float(lines[10].partition(" #")[0]) == -model.intercept_[0]
    assert lines[11].startswith("1 1:") and len(lines[11].split()) == 7


def test_more_features_than_in_the_file():
    assert load_svmlight_model(io.BytesIO(KERNEL), n_features=12).n_features_in_ == 12
    with pytest.raises(ValueError, match="n_features must not be less"):
        load_svmlight_model(io.BytesIO(KERNEL), n_features=5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"SVM-light", b"LIBSVM", "<file>:1: this is no model of SVM-light"),
        (b"2 # kernel type", b"4 # kernel type", "<file>:2: kernel type 4 is a user's own"),
        (b"2 # kernel type", b"x # kernel type", "<file>:2: kernel type must be a finite number"),
        (b"0.5 # kernel", b"nan # kernel", "<file>:4: kernel parameter -g must be a finite"),
        (b"0.5 # kernel", b" # kernel", "<file>:4: expected a number for the kernel parameter -g"),
        (b"9 # highest", b"3 # highest", "<file>:8: highest feature index 3, but .* has 9"),
        (b"9 # highest", b"2e9 # highest", "<file>:8: highest feature index 2000000000, but"),
        (b"9 # highest", b"-9 # highest", "<file>:8: highest feature index must be a whole"),
        (b"3 # number", b"7 # number", "<file> announces 6 support vectors, but has 2"),
        (b"3 # number", b"1 # number", "<file>:12: there are vectors, but none"),
        (b"-0.25 #", b"1e999 #", "<file>:11: threshold b must be a finite number, got '1e999'"),
        (b"3:2 #", b"3:x #", "<file>:12:13: "),
        (b"-1.5 2:1", b"-1.5 0:1", "<file>:13:6: "),
    ],
)
def test_mistakes_in_a_file(old, new, message):
    assert old in KERNEL
    with pytest.raises(ValueError, match=message):
        load_svmlight_model(io.BytesIO(KERNEL.replace(old, new)))


@pytest.mark.parametrize("end", [0, 5, 60, 200, 330])
def test_truncated_text(end):
    with pytest.raises(ValueError, match="<file>"):
        load_svmlight_model(io.BytesIO(KERNEL[:end]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("linear multiclass", "two classes, this one has 3"),
        ("ordinal", "no models of the kind OrdinalSVC"),
        ("precomputed", "no kernel 'precomputed'"),
    ],
)
def test_models_that_svmlight_has_not(name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save_svmlight_model(CASES[name].fitted(), tmp_path / "m")
    assert not list(tmp_path.iterdir())


# -- weights ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "linear sparse", "measure", "rank"])
def test_weights_there_and_back(name, tmp_path):
    model = CASES[name].fitted()
    save_weights(model, tmp_path / "w")
    numbers = [float(line) for line in (tmp_path / "w").read_text().splitlines()]
    assert numbers == [*model.coef_[0], model.intercept_[0]]
    other = load_weights(tmp_path / "w")
    np.testing.assert_array_equal(other.coef_, model.coef_)
    np.testing.assert_array_equal(other.decision_function(X), scores(model, X))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "has 0 numbers"),
        (b"1\n\n", "has 1 numbers; at least a weight and the bias"),
        (b"1\n\n2\n", "<file>:2: expected one finite number per line, got ''"),
        (b"1\n2 3\n", "<file>:2: .* got '2 3'"),
        (b"1\nnan\n", "<file>:2: .* got 'nan'"),
        (b"1\n1_0\n", "<file>:2: .* got '1_0'"),
        (b"1\n" + b"9" * 2000, "<file>:2: "),
        (b"\x80\x04\x95" + b"x" * 20, "not plain text but pickle"),
    ],
)
def test_mistakes_in_weights(text, message):
    with pytest.raises(ValueError, match=message):
        load_weights(io.BytesIO(text))


def test_weights_of_one_vector_only(tmp_path):
    with pytest.raises(ValueError, match="3 classes"):
        save_weights(CASES["linear multiclass"].fitted(), tmp_path / "w")
    with pytest.raises(ValueError, match="SVC is not one vector"):
        save_weights(CASES["rbf"].fitted(), tmp_path / "w")
    assert not list(tmp_path.iterdir())


# -- ONNX ---------------------------------------------------------------------

ONNX = [
    name
    for name in CASES
    if not name.startswith(("chain", "structured", "features")) and name != "precomputed"
]


def run_onnx(content: bytes, rows: np.ndarray) -> dict[str, np.ndarray]:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


def dense(rows):
    return np.asarray(rows.toarray() if scipy.sparse.issparse(rows) else rows)


@pytest.mark.parametrize("name", ONNX)
@pytest.mark.parametrize("input_type", ["float64", "float32"])
def test_onnx_gives_the_same_scores(name, input_type):
    onnx = pytest.importorskip("onnx")
    case = CASES[name]
    model, rows = case.fitted(), dense(case.X).astype(input_type)
    graph = to_onnx(model, input_type=input_type)
    onnx.checker.check_model(graph, full_check=True)
    found = run_onnx(graph.SerializeToString(), rows)
    expected = scores(model, rows)
    assert found["scores"].shape == expected.shape
    np.testing.assert_allclose(found["scores"], expected, rtol=1e-10, atol=1e-10)
    if "label" in found:
        assert found["label"].tolist() == model.predict(rows).tolist()
    else:
        assert name in ("rank", "regression", "linear regression", "quantiles")


def test_onnx_of_a_model_without_support_vectors():
    pytest.importorskip("onnx")
    model = SVC().fit(X, y)
    model.support_vectors_, model.support_ = X[:0], np.zeros(0, np.int32)
    model.dual_coef_, model.n_support_ = np.zeros((1, 0)), np.zeros(2, np.int32)
    found = run_onnx(to_onnx(model).SerializeToString(), X)
    np.testing.assert_array_equal(found["scores"], model.decision_function(X))


def test_onnx_files_and_refusals(tmp_path):
    pytest.importorskip("onnx")
    model = CASES["linear"].fitted()
    save_onnx(model, tmp_path / "m.onnx")
    found = run_onnx((tmp_path / "m.onnx").read_bytes(), X)
    assert found["label"].tolist() == model.predict(X).tolist()
    with pytest.raises(ValueError, match="'precomputed' cannot"):
        to_onnx(CASES["precomputed"].fitted())
    with pytest.raises(ValueError, match="ChainTagger cannot"):
        to_onnx(CASES["chain"].fitted())
    with pytest.raises(ValueError, match="input_type must be one of"):
        to_onnx(model, input_type="int8")
    for labels in (np.array(["a", "ß"], object), np.array([1.0, 2.0]), np.array([False, True])):
        model = LinearSVC().fit(X, labels[(three > 0).astype(int)].astype(labels.dtype))
        found = run_onnx(to_onnx(model).SerializeToString(), X)
        assert found["label"].tolist() == model.predict(X).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_onnx_on_real_data(kernel):
    """a9a in CUTPLANE_DATA: the labels of all test rows."""
    folder = Path(os.environ.get("CUTPLANE_DATA", "missing")) / "a9a"
    if not folder.exists():
        pytest.skip("set CUTPLANE_DATA to a folder with a9a")
    train, y_train = load_svmlight(folder / "train.svm.gz", n_features=123)
    test, y_test = load_svmlight(folder / "test.svm.gz", n_features=123)
    model = LinearSVC(C=0.1) if kernel == "linear" else SVC(C=1.0, gamma=0.05)
    some = slice(None) if kernel == "linear" else slice(5000)
    model.fit(train[some], y_train[some])
    found = run_onnx(to_onnx(model).SerializeToString(), test.toarray())
    np.testing.assert_allclose(found["scores"], model.decision_function(test), atol=1e-9)
    assert np.mean(found["label"] == model.predict(test)) == 1.0
    assert np.mean(found["label"] == y_test) > 0.84
