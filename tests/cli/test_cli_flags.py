"""Flags are made from the source of the estimators; here they are compared with the live ones."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import cutplane
from cutplane.cli import main, make_parser
from cutplane.cli.flags import NOT_FLAGS, SPECIAL, flag_name, parameters_given
from cutplane.cli.kinds import DEFAULT, KINDS, chosen
from cutplane.cli.signatures import parameters_of

CASES = [
    (kind, name)
    for kind in KINDS
    for name in inspect.signature(getattr(cutplane, kind.estimator)).parameters
]
# Text of an argument and what the estimator must get, where the type does not tell.
VALUES = {
    "class_weight": ("1:2.5,-1:0.5", {1.0: 2.5, -1.0: 0.5}),
    "random_state": ("7", 7),
    "k": ("0.25", 0.25),
    "gamma": ("0.125", 0.125),
    "max_iter": ("17", 17),
    "time_limit": ("2.5", 2.5),
    "n_jobs": ("2", 2),
    "intercept_scaling": ("1.5", 1.5),
    "nu": ("0.25", 0.25),
    "max_fpr": ("0.05", 0.05),
    "confidence": ("0.9", 0.9),
}


def kind_arguments(kind):
    if not kind.flag:
        return []
    return [kind.flag, "rbf" if kind.choice == "kernel" else "f1"] if kind.choice else [kind.flag]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_source_says_what_the_classes_are(kind):
    live = inspect.signature(getattr(cutplane, kind.estimator)).parameters
    found = {p.name: p for p in parameters_of(kind.estimator)}
    assert list(found) == list(live)
    for name, parameter in live.items():
        assert found[name].default == parameter.default
        assert found[name].annotation == str(parameter.annotation)
        assert found[name].text and found[name].text.isascii()


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda x: getattr(x, "name", x))
def test_every_parameter_is_a_flag(kind, name):
    parameter = next(p for p in parameters_of(kind.estimator) if p.name == name)
    if name in NOT_FLAGS or parameter.text.startswith("Not used"):
        return
    flag = flag_name(name)
    choices = (SPECIAL[name].choices if name in SPECIAL else ()) or parameter.choices
    if parameter.annotation == "bool":
        expected = not parameter.default
        words = [flag if expected else f"--no-{flag[2:]}"]
    elif name in VALUES:
        text, expected = VALUES[name]
        words = [flag, text]
    elif choices:
        expected = choices[-1]
        words = [flag, str(expected)]
    else:
        expected = 3 if "int" in parameter.alternatives else 3.0
        words = [flag, "3"]
    before = [] if name == kind.choice else kind_arguments(kind)
    args = make_parser().parse_args(["train", *before, *words, "data", "model"])
    assert args.kind is kind
    given = parameters_given(args)
    assert given[name] == expected and type(given[name]) is type(expected)
    getattr(cutplane, kind.estimator)(**given)


def test_measures_are_those_of_the_estimator():
    from cutplane.estimators.measure_svc import MEASURES

    assert SPECIAL["measure"].choices == MEASURES


def test_kinds_by_flags():
    assert chosen(["a", "b"]) is DEFAULT
    assert chosen(["--kernel=rbf"]).estimator == "SVC"
    assert chosen(["--regression", "--kernel", "rbf"]).estimator == "SVR"
    assert len({kind.estimator for kind in KINDS}) == len(KINDS)


def test_both_spellings_and_n_jobs():
    args = make_parser().parse_args(["train", "--max_iter=3", "--n_jobs", "2", "d", "m_odel"])
    assert parameters_given(args) == {"max_iter": 3, "n_jobs": 2} and args.model == "m_odel"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--maxiter", "3", "d", "m"], "unknown flag --maxiter; did you mean --max-iter?"),
        (["train", "--xyz", "d", "m"], "unknown flag --xyz; see cutplane train --help"),
        (["train", "--weighting", "pairs", "d", "m"], "it belongs to --ranking"),
        (["train", "--ranking", "--ordinal", "d", "m"], "not allowed with argument"),
        (["train", "--ranking", "--loss", "hinge", "d", "m"], "it belongs to --chain, the default"),
        (["train", "--loss", "huge", "d", "m"], "invalid choice: 'huge'"),
        (["train", "--C", "0", "d", "m"], "must be a number above 0, got '0'"),
        (["train", "--C", "-1", "d", "m"], "must be a number above 0, got '-1'"),
        (["train", "--C", "nan", "d", "m"], "must be a number above 0, got 'nan'"),
        (["train", "--C", "inf", "d", "m"], "must be a number above 0, got 'inf'"),
        (["train", "--tol", "-1", "d", "m"], "must not be negative"),
        (["train", "--max-iter", "0", "d", "m"], "must be an integer above 0"),
        (["train", "--max-iter", "x", "d", "m"], "must be an integer, got 'x'"),
        (["train", "--threads", "0", "d", "m"], "must be a number of threads"),
        (["train", "--class-weight", "heavy", "d", "m"], "must be 'balanced' or factors"),
        (["train", "--one-class", "--nu", "2", "d", "m"], "must be a number above 0 and up to 1"),
        (["train", "--kernel", "rbf", "--gamma", "tiny", "d", "m"], "must be a number"),
        (["train", "d"], "required: MODEL"),
        (["train", "d", "m", "extra"], "too many arguments: extra"),
        (["predict", "--outputs", "x", "d", "m"], "did you mean --output?"),
        (["path", "--C", "1,x", "--validation", "v", "d", "m"], "must be a number above 0"),
        (["completion", "csh"], "invalid choice"),
    ],
)  # fmt: skip
def test_wrong_usage_is_said_and_coded(arguments, message, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_help_of_a_kind_shows_its_parameters_only(kind, capsys):
    assert main(["train", *kind_arguments(kind), "--help"]) == 0
    text = capsys.readouterr().out
    assert text.isascii() and f"parameters of {kind.estimator}" in text
    assert ("--weighting" in text) == (kind.name == "ranking")
    assert ("--nu" in text) == (kind.name == "one-class")


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from cutplane.cli import main\n"
        "for command in ('train', 'path', 'predict', 'evaluate', 'info', 'convert'):\n"
        "    assert main([command, '--help']) == 0\n"
        "assert main(['completion', 'bash']) == 0\n"
        "assert not {'numba', 'sklearn', 'scipy', 'matplotlib', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
