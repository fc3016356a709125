"""One case alone: ``pytest tests/certificates --case SVC-17``."""

from __future__ import annotations

import pytest


def pytest_addoption(parser):
    parser.addoption("--case", action="append", metavar="NAME", help="fit this case only")


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        names = metafunc.config.getoption("--case", default=None) or metafunc.module.DEFAULT
        metafunc.parametrize("name", names)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--case", default=None):
        items[:] = [item for item in items if "name" in getattr(item, "fixturenames", ())]


@pytest.fixture(scope="session")
def fits():
    from fits import Fits  # which imports what may be missing

    fits = Fits()
    yield fits
    fits.close()
