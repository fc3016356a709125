"""What the package does to a process: imports, compiled code, output."""

from __future__ import annotations

import ctypes
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from svc_reference import PACKAGE, run_script

FIT = """
    import numpy as np
    from cutplane import LinearSVC
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    model = LinearSVC().fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    print("fitted")
"""


def test_imports_are_light():
    """The package imports nothing, the estimator no plotting, and neither compiles."""
    script = """
        import gc, sys
        import cutplane
        heavy = {"sklearn", "numba", "scipy", "matplotlib", "pandas", "joblib", "rich", "dask"}
        print(sorted(heavy & set(sys.modules)))
        cutplane.LinearSVC
        print(sorted({"matplotlib", "polars", "dask", "IPython"} & set(sys.modules)))
        from numba.core.dispatcher import Dispatcher
        kernels = [thing for thing in gc.get_objects() if isinstance(thing, Dispatcher)]
        ours = [kernel for kernel in kernels if kernel.__module__.startswith("cutplane")]
        assert ours
        print([kernel.__name__ for kernel in ours if kernel.signatures])
    """
    assert run_script(script).stdout.splitlines() == ["[]"] * 3


def test_public_names():
    import cutplane

    for name in cutplane.__all__:
        assert getattr(cutplane, name) is not None
    assert set(cutplane.__all__) <= set(dir(cutplane))
    with pytest.raises(AttributeError, match="LinearSVM"):
        cutplane.LinearSVM  # noqa: B018
    from cutplane import LinearSVC

    assert LinearSVC is cutplane.LinearSVC


# -- where compiled code cannot be kept -----------------------------------------------


def test_a_cache_folder_that_cannot_be_made(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    environment = {"NUMBA_CACHE_DIR": str(blocker / "cache")}
    assert run_script(FIT, environment=environment).stdout == "fitted\n"


@pytest.fixture
def locked_package():
    """A copy of the package that nobody may write to, in a folder that everybody may read."""
    folder = Path(tempfile.mkdtemp(prefix="cutplane-locked-"))
    shutil.copytree(PACKAGE, folder / "cutplane", ignore=shutil.ignore_patterns("__pycache__"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)


def obey_file_modes() -> None:
    """Give up root's right to write where the modes forbid it (CAP_DAC_OVERRIDE)."""
    drop_from_bounding_set, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs file modes and prctl")
def test_nowhere_to_write(locked_package, tmp_path):
    """Package folder, home and NUMBA_CACHE_DIR are all unwritable."""
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    environment = {
        "PYTHONPATH": str(locked_package),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(blocker / "cache"),
        "HOME": str(blocker / "home"),
        "XDG_CACHE_HOME": str(blocker / "home"),
        "LOCKED": str(locked_package / "cutplane"),
    }
    script = (
        """
    import os
    import cutplane
    locked = os.environ["LOCKED"]
    assert cutplane.__file__.startswith(locked)
    if os.access(locked, os.W_OK) or os.access(locked + "/loops", os.W_OK):
        print("cannot lock")
        raise SystemExit
    """
        + FIT
    )
    done = run_script(script, environment=environment, before=obey_file_modes)
    if "cannot lock" in done.stdout:
        pytest.skip("this user may write anywhere")
    assert "fitted" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_FSIZE")
def test_a_full_disk_under_the_cache(tmp_path):
    """The folder is there and writable, but nothing fits into it."""
    script = (
        """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    """
        + FIT
    )
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    assert "fitted" in run_script(script, environment=environment).stdout


@pytest.mark.slow
def test_a_cold_and_a_warm_cache_give_the_same_bits(tmp_path):
    script = FIT + "    print(model.coef_.tobytes().hex())\n"
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    cold = run_script(script, environment=environment).stdout
    assert any(tmp_path.rglob("*.nbi"))
    assert run_script(script, environment=environment).stdout == cold
