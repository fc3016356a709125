"""A model that is saved and loaded is the same model, or the file is refused with a reason."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path

import joblib
import numpy as np
import pandas
import pytest
from model_cases import CASES, X, assert_same_bits, predictions, sequences, three, y
from model_mutations import CORPUS, put_together, taken_apart
from sklearn.base import clone

import cutplane
from cutplane import SVC, LinearSVC, OneClassSVM, RankSVM, StructuredSVM
from cutplane.data.files import output
from cutplane.models import SKOPS_TRUSTED, describe, load_model, register, save_model
from cutplane.result import Iteration
from cutplane.store import container
from cutplane.structured import MulticlassProblem

linear = CASES["linear many features"]


def crafted(change, model=None) -> bytes:
    """A file whose header was changed by someone who knows how to make the digest fit."""
    target = io.BytesIO()
    save_model(model or linear.fitted(), target)
    header, body = taken_apart(target.getvalue())
    change(header)
    return put_together(header, body)


def refused(data: bytes, tmp_path: Path, *words: str) -> None:
    """From a file and from a pipe: an error that names the file and the cause."""
    path = tmp_path / "some.model"
    path.write_bytes(data)
    for source in (path, io.BytesIO(data)):
        with pytest.raises(ValueError) as caught:
            load_model(source)
        name = str(path) if source is path else "<file>"
        assert str(caught.value).startswith(name)
        assert all(word in str(caught.value) for word in words), caught.value


# -- the same model -----------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_same_predictions_and_attributes(name, tmp_path):
    case = CASES[name]
    model, path = case.fitted(), tmp_path / "a.model"
    save_model(model, path)
    loaded = load_model(path)
    assert type(loaded) is type(model) and repr(loaded) == repr(model)
    assert_same_bits(predictions(loaded, case.X), predictions(model, case.X))
    state = model.__getstate__()
    assert set(vars(loaded)) == set(state)
    for key in ("certificate_", "n_iter_", "n_features_in_", "classes_"):
        if key in state:
            np.testing.assert_array_equal(getattr(loaded, key), state[key])
    if not hasattr(model, "results_"):  # a transformer
        return
    results = [m.results_ for m in (loaded, model)]
    for mine, theirs in zip(*results, strict=True):
        assert mine.trace == theirs.trace and mine.timings == theirs.timings
        assert type(mine.certificate) is type(theirs.certificate) and mine.status is theirs.status
        np.testing.assert_array_equal(mine.w, theirs.w)
    clone(loaded)
    again = tmp_path / "b.model"
    save_model(loaded, again)
    assert again.read_bytes() == path.read_bytes()


def test_frames_keep_their_names(tmp_path):
    frame = pandas.DataFrame(X, columns=[f"größe {k}" for k in range(X.shape[1])])
    model = LinearSVC().fit(frame, y)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.feature_names_in_.dtype == object
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()
    assert_same_bits([loaded.predict(frame)], [model.predict(frame)])
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize("dtype", ["U", "O", "i2", "f4", "?", "u8", ">i4"])
def test_labels_of_any_type(dtype, tmp_path):
    labels = np.array(["no", "yes"])[three // 2] if dtype in "UO" else (three // 2)
    model = LinearSVC().fit(X, labels.astype(dtype))
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m").classes_
    assert loaded.tolist() == model.classes_.tolist()
    assert loaded.dtype == model.classes_.dtype.newbyteorder("=")


def test_a_loaded_model_can_be_fitted_on(tmp_path):
    model = LinearSVC(warm_start=True, callback=print, checkpoint=tmp_path / "c").fit(X, y)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.callback is None and loaded.checkpoint is None and loaded.warm_start
    loaded.set_params(C=2.0).fit(X, y)
    assert loaded.certificate_.relative_gap <= 1e-3


def test_generators_are_not_stored(tmp_path):
    model = LinearSVC(solver="sgd", random_state=np.random.RandomState(0), max_iter=5, tol=0.5)
    save_model(model.fit(X, y), tmp_path / "m")
    assert load_model(tmp_path / "m").random_state is None
    save_model(model.set_params(random_state=np.int64(7)).fit(X, y), tmp_path / "m")
    assert load_model(tmp_path / "m").random_state == 7


# -- things of the user's own -------------------------------------------------


class Doubled(MulticlassProblem):
    """A user's problem, with numbers of its own."""

    def prepare(self, X, Y):
        known = super().prepare(X, Y)
        return Doubled(2.0 * known.cost, known.classes)


def overlap(A, B):
    return np.minimum(np.abs(A)[:, None], np.abs(B)).sum(axis=2)


def test_unregistered_things_are_refused(tmp_path):
    kernel = SVC(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(ValueError, match=r"kernel of this SVC is a function.*register"):
        save_model(kernel, tmp_path / "m")

    class Local(Doubled):
        pass

    with pytest.raises(ValueError, match=r"problem of this StructuredSVM.*Local.*register"):
        save_model(StructuredSVM(Local()).fit(X, three), tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_registered_things(tmp_path, monkeypatch):
    from cutplane.models.registry import REGISTRY

    monkeypatch.setattr(REGISTRY, "objects", dict(REGISTRY.objects))
    register(Doubled)
    assert register(overlap, "my kernel") is overlap
    register(overlap, "my kernel")
    with pytest.raises(ValueError, match="registered already"):
        register(len.__class__, "my kernel")
    with pytest.raises(ValueError, match="classes and functions"):
        register(3)
    structured = StructuredSVM(Doubled()).fit(X, three)
    kernel = SVC(kernel=overlap).fit(X, y)
    for number, model in enumerate((structured, kernel)):
        save_model(model, tmp_path / str(number))
        assert_same_bits(predictions(load_model(tmp_path / str(number)), X), predictions(model, X))
    assert isinstance(load_model(tmp_path / "0").problem_, Doubled)
    REGISTRY.objects.clear()
    for number, name in enumerate(("Doubled", "my kernel")):
        with pytest.raises(ValueError, match=f"{name}.* is not registered; import its module"):
            load_model(tmp_path / str(number))


def test_only_fitted_models_of_ours(tmp_path):
    class Mine(LinearSVC):
        pass

    with pytest.raises(ValueError, match="LinearSVC is not fitted; call fit"):
        save_model(LinearSVC(), tmp_path / "m")
    with pytest.raises(ValueError, match="own estimators can be saved, got Mine"):
        save_model(Mine().fit(X, y), tmp_path / "m")
    with pytest.raises(ValueError, match="own estimators can be saved, got str"):
        save_model("model", tmp_path / "m")


# -- what describe tells ------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_describe(name, tmp_path):
    model, path = CASES[name].fitted(), tmp_path / "m"
    save_model(model, path)
    found = describe(path)
    json.dumps(found)
    assert found["kind"] == type(model).__name__ and found["version"] == 2
    assert found["writer"] == f"cutplane {cutplane.__version__}"
    if not hasattr(model, "certificate_"):
        assert found["certificate"] is None
        return
    certificates = model.certificates_
    told = found["certificate"] if len(certificates) > 1 else [found["certificate"]]
    for key in ("primal", "dual", "gap", "relative_gap", "kind"):
        assert [c[key] for c in told] == [getattr(c, key) for c in certificates]
    if hasattr(model, "coef_") and "coef_" in vars(model):
        assert found["sizes"]["coef_"] == list(model.coef_.shape)
    assert found["sizes"]["bytes"] == path.stat().st_size
    if hasattr(model, "classes_"):
        assert found["classes"] == model.classes_.tolist()
    assert found["n_features"] == getattr(model, "n_features_in_", None)
    assert found["parameters"]["tol"] == model.tol


def test_describe_reads_the_header_alone(tmp_path):
    path = tmp_path / "m"
    save_model(linear.fitted(), path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert describe(path)["kind"] == "LinearSVC"
    with pytest.raises(ValueError, match="do not fit their SHA-256"):
        load_model(path)
    path.write_bytes(data[:-1])
    with pytest.raises(ValueError, match="bytes, but its header tells of"):
        describe(path)


# -- 43 and 44: writing -------------------------------------------------------

WRITER = """
    import sys
    import numpy as np
    from cutplane import LinearSVC, save_model
    model = LinearSVC()
    model.coef_ = np.arange(100_000.0)[None]
    model.intercept_, model.classes_, model.n_features_in_ = np.zeros(1), np.array([0, 1]), 100_000
    while True:
        save_model(model, sys.argv[1])
        model.coef_ = model.coef_ + 1.0
        print("written", flush=True)
"""


def test_43_killed_while_writing(tmp_path):
    path = tmp_path / "m"
    rng = np.random.default_rng(0)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(path)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"written\n"
        for _ in range(8):
            time.sleep(rng.uniform(0.0, 0.02))
            process.send_signal(signal.SIGSTOP)  # as it would be found after a kill
            coef = load_model(path).coef_[0]
            assert coef[-1] - coef[0] == 99_999.0
            process.send_signal(signal.SIGCONT)
    finally:
        process.kill()
        process.wait()
    coef = load_model(path).coef_[0]
    assert coef[-1] - coef[0] == 99_999.0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_44_disk_full(tmp_path, monkeypatch):
    with pytest.raises(OSError, match="No space left"), open("/dev/full", "wb") as full:
        save_model(linear.fitted(), full)
        full.flush()
    path = tmp_path / "m"
    save_model(CASES["linear"].fitted(), path)
    before = path.read_bytes()

    def fsync(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match=rf"cannot write: No space left on device: '{path}'"):
        save_model(linear.fitted(), path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["m"]


def test_44_folders_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"cannot write: Not a directory: .*file/m"):
        save_model(linear.fitted(), tmp_path / "file" / "m")
    with pytest.raises(FileNotFoundError, match=r"cannot write: No such file .*nowhere/m"):
        save_model(linear.fitted(), tmp_path / "nowhere" / "m")
    with pytest.raises(IsADirectoryError, match="cannot write: Is a directory"):
        save_model(linear.fitted(), tmp_path)
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):
        pytest.skip("permissions do not hold for this user")
    with pytest.raises(PermissionError, match=r"cannot write: Permission denied: .*locked/m"):
        save_model(linear.fitted(), folder / "m")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", ["linear", "linear multiclass"])
def test_files_with_the_names_of_before_are_read(name, tmp_path):
    model = CASES[name].fitted()
    older = copy.copy(model)
    older.result_ = model.results_ if len(model.results_) > 1 else model.results_[0]
    older.certificate_ = model.certificates_ if len(model.results_) > 1 else model.certificate_
    del older.results_, older.certificates_
    save_model(older, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert not hasattr(loaded, "result_")
    assert loaded.certificate_ == model.certificate_
    assert loaded.certificates_ == model.certificates_ and loaded.n_iter_ == model.n_iter_
    assert [r.n_iter for r in loaded.results_] == [r.n_iter for r in model.results_]


def test_a_structured_model_of_before_is_refused_with_the_reason(tmp_path):
    X, three = np.eye(3), [0, 1, 2]
    older = StructuredSVM(MulticlassProblem()).fit(X, three)
    del older.part_shape_
    save_model(older, tmp_path / "m")
    with pytest.raises(ValueError) as caught:
        load_model(tmp_path / "m")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'm'} holds a StructuredSVM that cutplane ")
    assert message.endswith("this version cannot use it: fit the model again")
    assert "damaged" not in message


# -- 46 to 50: reading --------------------------------------------------------


def test_46_truncated(tmp_path):
    target = io.BytesIO()
    save_model(linear.fitted(), target)
    data = target.getvalue()
    refused(b"", tmp_path, "is empty")
    for end in (3, 8, 30, 51, 60, 1000, len(data) // 2, len(data) - 1):
        refused(data[:end], tmp_path, "is no file" if end < 40 else "is damaged")
    refused(data + b"\0", tmp_path, "is damaged")


def test_46_any_flipped_bit_is_found():
    target = io.BytesIO()
    save_model(linear.fitted(), target)
    data = target.getvalue()
    rng = np.random.default_rng(0)
    for place in [*range(container.DIGITS.stop), *rng.integers(0, len(data), 150)]:
        for bit in (1, 128):
            changed = bytearray(data)
            changed[place] ^= bit
            with pytest.raises(ValueError):
                load_model(io.BytesIO(changed))


@pytest.mark.parametrize(
    "length", [0, 10, 1 << 20, 1 << 40, (1 << 64) - 1], ids=lambda n: f"{n:.0e}"
)
def test_47_length_of_the_header(length, tmp_path):
    target = io.BytesIO()
    save_model(linear.fitted(), target)
    data = bytearray(target.getvalue())
    data[:8] = length.to_bytes(8, "little")
    refused(bytes(data), tmp_path, "is damaged")


def _array(header, **values):
    header["arrays"]["0"].update(values)


@pytest.mark.parametrize(
    "change",
    [
        lambda h: _array(h, shape=[1 << 60]),
        lambda h: _array(h, shape=[1 << 60], data_offsets=[0, 1 << 63]),
        lambda h: _array(h, shape=[-5]),
        lambda h: _array(h, shape=[-5], data_offsets=[0, -40]),
        lambda h: _array(h, shape=[1e3]),
        lambda h: _array(h, shape=[]),
        lambda h: _array(h, shape=None),
        lambda h: _array(h, data_offsets=[8, 16]),
        lambda h: _array(h, data_offsets=[1 << 50, 1 << 51]),
        lambda h: _array(h, dtype="O"),
        lambda h: _array(h, dtype="F8_E4M3"),
        lambda h: _array(h, dtype=["F64"]),
        lambda h: h.update(arrays=dict(reversed(h["arrays"].items()))),
        lambda h: h["arrays"].update({str(len(h["arrays"])): h["arrays"]["0"]}),
        lambda h: h["arrays"].popitem(),
        lambda h: h["arrays"].update(other=3),
        lambda h: h.update(arrays={}),
        lambda h: h.pop("content"),
        lambda h: h.pop("kind"),
        lambda h: h.update(kind=3),
        lambda h: h.update(content=None),
    ],
)
def test_47_sizes(change, tmp_path):
    refused(crafted(change), tmp_path, "is damaged")


def _attribute(header, name, value):
    header["content"]["attributes"][name] = value


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda h: h["content"]["attributes"]["coef_"].update(shape=[3, 10**15]), "coef_|shape"),
        (lambda h: h["content"]["attributes"]["coef_"].update(shape=[-3, -360]), "shape"),
        (lambda h: h["content"]["attributes"]["coef_"].update(array=99), "no array 99"),
        (lambda h: _attribute(h, "coef_", [1.0]), "coef_ must be float64 of shape"),
        (lambda h: _attribute(h, "n_features_in_", 10**9), "coef_ must be float64 of shape"),
        (lambda h: _attribute(h, "n_features_in_", -1), "n_features_in_"),
        (lambda h: _attribute(h, "predict", 3), "'predict' is no fitted attribute"),
        (lambda h: _attribute(h, "__class__", 3), "'__class__' is no fitted attribute"),
        (
            lambda h: _attribute(h, "classes_", {"numbers": [1], "shape": [1], "dtype": "<i8"}),
            "two",
        ),
        (lambda h: _attribute(h, "x_", {"numbers": [1], "shape": [1], "dtype": "O"}), "type"),
        (lambda h: _attribute(h, "x_", {"numbers": ["a"], "shape": [1], "dtype": "<i8"}), "none"),
        (lambda h: _attribute(h, "x_", {"numbers": [300], "shape": [1], "dtype": "|u1"}), ""),
        (lambda h: _attribute(h, "x_", {"code": "import os"}), "kind 'code'"),
        (lambda h: _attribute(h, "x_", {}), "not known"),
        (lambda h: _attribute(h, "x_", {"function": "os.system"}), "os.system.* not registered"),
        (lambda h: _attribute(h, "x_", {"record": "Popen"}), "Popen"),
        (lambda h: _attribute(h, "x_", {"record": "Certificate", "primal": 1, "x": 2}), "has no x"),
        (lambda h: h["content"]["parameters"].update(C=-1.0), "C must be"),
        (lambda h: h["content"]["parameters"].update(depth=3), "does not know: depth"),
        (lambda h: h.update(kind="Forest"), "holds a 'Forest'.*does not know it"),
    ],
)
def test_47_contents(change, word, tmp_path):
    with pytest.raises(ValueError, match=word or "some"):
        path = tmp_path / "some"
        path.write_bytes(crafted(change))
        load_model(path)


def test_47_support_vectors_that_point_beyond():
    model = CASES["rbf sparse"].fitted()

    def change(header):
        vectors = header["content"]["attributes"]["support_vectors_"]
        vectors["shape"][1] = 3
        header["content"]["attributes"]["n_features_in_"] = 3

    with pytest.raises(ValueError, match="sparse matrix whose parts do not fit"):
        load_model(io.BytesIO(crafted(change, model)))


def test_47_deep_nesting():
    for deep in (b"[" * 200_000, b'{"a":' * 200_000):
        text = container.PREFIX + b"0" * 64 + b'","kind":"LinearSVC"},"0":' + deep
        head = bytearray(len(text).to_bytes(8, "little") + text)
        head[container.DIGITS] = hashlib.sha256(head).hexdigest().encode()
        with pytest.raises(ValueError, match="damaged: its header is wrong"):
            load_model(io.BytesIO(head))


# -- memory: a small multiple of the file -------------------------------------


def _peak(data: bytes) -> int:
    """Bytes that loading takes at most, whatever becomes of it."""
    tracemalloc.start()
    try:
        with contextlib.suppress(ValueError):
            load_model(io.BytesIO(data))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _many_arrays(header):
    header["content"]["attributes"]["x_"] = [{"array": 0, "shape": [1080]}] * 5000


def _many_traces(header):
    column = {"array": 0, "shape": [1080]}
    names = [field.name for field in dataclasses.fields(Iteration)]
    header["content"]["attributes"]["x_"] = [
        {"trace": "Iteration", **dict.fromkeys(names, column)} for _ in range(300)
    ]


def _padded_strings(header):
    texts = ["x" * 5000, *[""] * 5000]
    value = {"strings": texts, "shape": [len(texts)], "dtype": "U"}
    header["content"]["attributes"]["x_"] = value


@pytest.mark.parametrize("change", [_many_arrays, _many_traces, _padded_strings])
def test_47_memory(change):
    plain = _peak(crafted(lambda h: None))
    data = crafted(change)
    # One that is not shared, listed once or not padded would take 40 to 600 MB.
    assert _peak(data) - plain < 30 * len(data) < 15e6


def test_47_strings_of_very_different_lengths(tmp_path):
    """They take no more memory than there is in the file, but they can be stored."""
    labels = np.array(["x" * 3000, "ü🙂", *map(str, range(88))])
    model = LinearSVC(max_iter=1, tol=10.0).fit(X, labels)
    save_model(model, tmp_path / "m")
    assert_same_bits([load_model(tmp_path / "m").classes_], [model.classes_])
    assert describe(tmp_path / "m")["classes"] is None


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_47_compressed_files_that_would_burst(suffix, tmp_path):
    path = tmp_path / f"m{suffix}"
    header, body = taken_apart(crafted(lambda h: None))
    header["arrays"] = {"0": {"dtype": "F64", "shape": [1 << 27], "data_offsets": [0, 1 << 30]}}
    with output(path) as file:
        file.write(put_together(header, body))
    for use in (load_model, describe):
        with pytest.raises(ValueError, match=r"would decompress to 107.* decompress it yourself"):
            use(path)


def test_47_out_of_memory(tmp_path, monkeypatch):
    path = tmp_path / "m"
    save_model(linear.fitted(), path)

    def loads(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(container.json, "loads", loads)
    for use in (load_model, describe):
        with pytest.raises(ValueError, match=f"{path} needs more memory than there is"):
            use(path)


def test_an_array_that_is_there_twice_is_stored_once(tmp_path):
    model = LinearSVC().fit(np.tile(X, 60), y)
    model.twice_ = [model.coef_, model.coef_, model.coef_.copy(), model.coef_[0]]
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    for array in (loaded.twice_[0], loaded.twice_[1], loaded.twice_[3]):
        assert np.shares_memory(array, loaded.coef_)
    assert not np.shares_memory(loaded.twice_[2], loaded.coef_)
    assert_same_bits(loaded.twice_, model.twice_)


@pytest.mark.parametrize("name", ["linear many features", "rbf sparse", "chain order 2"])
def test_other_programs_read_the_arrays(name, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    path = tmp_path / "m.safetensors"
    save_model(CASES[name].fitted(), path)
    with safetensors.safe_open(path, "numpy") as file:
        metadata = file.metadata()
        arrays = [file.get_tensor(str(k)) for k in range(len(list(file.keys())))]
    ours = container.read(path)
    assert_same_bits(arrays, list(ours.arrays))
    assert metadata["kind"] == describe(path)["kind"]
    assert json.loads(metadata["content"]) == ours.header.content


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_48_a_pickle_is_never_loaded(protocol, tmp_path):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("the pickle was loaded",)

    words = ["it looks like a pickle"] if protocol >= 2 else ["no file written by cutplane"]
    refused(pickle.dumps(Trap(), protocol), tmp_path, *words)


def test_49_other_versions(tmp_path):
    header, body = taken_apart(crafted(lambda h: None))
    refused(put_together(header, body, 3), tmp_path, "version 3", "newer", "version 2: upgrade")
    refused(put_together(header, body, 1), tmp_path, "format version 1 does not exist")
    old = (CORPUS / "version-1.model").read_bytes()
    refused(old, tmp_path, "by an older one, whose files are not read: train again")


def test_other_files(tmp_path):
    refused(b"SVM-light Version V6.02\n", tmp_path, "load_svmlight_model")
    refused(b"\x10" + bytes(7) + b'{"0":{}}', tmp_path, "no file written by cutplane")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_model(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name", ["a b.model", "größe ≤ 3 🙂", "x" * 230, "m.gz", "m.bz2", "m.xz", "-x"]
)
def test_50_names(name, tmp_path):
    model = linear.fitted()
    save_model(model, tmp_path / name)
    assert_same_bits([load_model(tmp_path / name).coef_], [model.coef_])
    assert describe(str(tmp_path / name))["kind"] == "LinearSVC"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_50_standard_streams():
    code = """
        from cutplane import load_model, save_model
        save_model(load_model("-"), "-")
    """
    target = io.BytesIO()
    save_model(linear.fitted(), target)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        input=target.getvalue(),
        capture_output=True,
        check=True,
    )
    assert done.stdout == target.getvalue() and done.stderr == b""


# -- other people's formats ---------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_pickle_and_joblib(name, tmp_path):
    case = CASES[name]
    model = case.fitted()
    joblib.dump(model, tmp_path / "m")
    for other in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "m")):
        assert_same_bits(predictions(other, case.X), predictions(model, case.X))
        assert getattr(other, "certificate_", None) == getattr(model, "certificate_", None)


@pytest.mark.parametrize("name", CASES)
def test_skops(name):
    io_ = pytest.importorskip("skops.io")
    case = CASES[name]
    model = case.fitted()
    data = io_.dumps(model)
    assert set(io_.get_untrusted_types(data=data)) <= set(SKOPS_TRUSTED)
    other = io_.loads(data, trusted=SKOPS_TRUSTED)
    assert_same_bits(predictions(other, case.X), predictions(model, case.X))


def test_all_kinds_are_here():
    kinds = {type(case.fitted()) for case in CASES.values()}
    assert kinds >= {OneClassSVM, RankSVM, StructuredSVM, SVC} and len(kinds) == 12
    assert len(sequences) > 0
