"""The table of parameters, compared with the signatures and the checks of the live estimators."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import cutplane
from cutplane.cli import main, make_parser
from cutplane.cli.kinds import DEFAULT, KINDS, chosen
from cutplane.cli.parameters import (
    NOT_OFFERED,
    PARAMETERS,
    defaults_of,
    offered,
    parameter_of,
    parameters_given,
)

CASES = [(kind, entry.name) for kind in KINDS for entry in offered(kind.estimator)]
# Text of an argument and what the estimator must get, where it is not 3.
VALUES = {
    "quantile": ("0.1,0.9", [0.1, 0.9]),
    "class_weight": ("1:2.5,-1:0.5", {1.0: 2.5, -1.0: 0.5}),
    "bounds": ("0:inf", (0.0, float("inf"))),
    "template": ("none", None),
    "k": ("0.25", 0.25),
    "gamma": ("0.125", 0.125),
    "nu": ("0.25", 0.25),
    "beta": ("2.5", 2.5),
    "max_fpr": ("0.05", 0.05),
    "confidence": ("0.9", 0.9),
    "C": ("3", 3.0),
    "tol": ("3", 3.0),
    "coef_threshold": ("0.01", 0.01),
    "epsilon": ("3", 3.0),
    "coef0": ("-3", -3.0),
    "cache_size": ("3", 3.0),
    "time_limit": ("2.5", 2.5),
    "intercept_scaling": ("1.5", 1.5),
}


def live(kind):
    return inspect.signature(getattr(cutplane, kind.estimator)).parameters


def kind_arguments(kind):
    values = {"--kernel": ["--kernel", "rbf"], "--measure": ["--measure", "f1"]}
    return [word for flag in kind.flags for word in values.get(flag, [flag])]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.estimator)
def test_every_parameter_is_a_flag_or_there_is_a_reason(kind):
    flags = {entry.name for entry in offered(kind.estimator)}
    reasons = {name for name in live(kind) if {name, f"{kind.estimator}.{name}"} & {*NOT_OFFERED}}
    missing = set(live(kind)) - flags - reasons
    assert not missing, f"{kind.estimator}: add {missing} to PARAMETERS or to NOT_OFFERED"
    assert not flags & reasons
    defaults = {name: parameter.default for name, parameter in live(kind).items()}
    assert defaults_of(kind.estimator) == defaults


def test_the_table_holds_nothing_else():
    used = {id(entry) for kind in KINDS for entry in offered(kind.estimator)}
    assert [entry.name for entry in PARAMETERS if id(entry) not in used] == []
    names = {name for kind in KINDS for name in live(kind)}
    estimators = {kind.estimator for kind in KINDS}
    for name in NOT_OFFERED:
        owner, _, parameter = name.rpartition(".")
        assert parameter in names and owner in {"", *estimators}
    assert all(set(entry.of) <= estimators for entry in PARAMETERS)


@pytest.mark.parametrize("entry", PARAMETERS, ids=lambda entry: entry.name)
def test_help_is_made_of_sentences(entry):
    """ "Of poly." teaches nobody."""
    assert entry.help.isascii() and entry.help.endswith(".")
    assert len(entry.help.split()) >= 3 or entry.name in ("degree",)
    assert not re.search(r"\b(As for|Of [a-z]+\.|None)\b", entry.help)
    for flag in re.findall(r"--[a-z][a-z0-9-]+", entry.help):
        assert flag in {name for other in PARAMETERS for name in other.flags}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.estimator)
def test_where_the_default_is_none_the_help_says_what_happens(kind):
    for entry in offered(kind.estimator):
        assert bool(entry.unset) == (live(kind)[entry.name].default is None), entry.name


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda x: getattr(x, "estimator", x))
def test_values_arrive(kind, name):
    entry = parameter_of(kind.estimator, name)
    default = live(kind)[name].default
    if isinstance(default, bool):
        expected = not default
        words = [f"--{'' if expected else 'no-'}{entry.flags[-1][2:]}"]
    else:
        text, expected = VALUES.get(name, ("3", 3))
        if (kind.estimator, name) == ("RankSVM", "k"):
            text, expected = "3", 3  # positions, not a share of rows
        if entry.choices:
            text, expected = str(entry.choices[-1]), entry.choices[-1]
        words = [entry.flags[0], text]
    before = kind_arguments(replace(kind, flags=tuple(f for f in kind.flags if f != f"--{name}")))
    arguments = ["train", *before, *words, "data", "model"]
    args = make_parser(arguments).parse_args(arguments)
    assert args.kind is kind
    given = parameters_given(args)
    assert given[name] == expected and type(given[name]) is type(expected)
    getattr(cutplane, kind.estimator)(**given)
    if entry.unset and not entry.choices:
        arguments = ["train", *before, entry.flags[0], "none", "data", "model"]
        assert parameters_given(make_parser(arguments).parse_args(arguments))[name] is None


@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, n) for k, n in CASES if parameter_of(k.estimator, n).choices and n != "order"],
    ids=lambda x: getattr(x, "estimator", x),
)  # fmt: skip
def test_choices_are_those_that_the_estimator_takes(kind, name):
    """The estimator's own message lists its choices."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 3.0]])
    model = getattr(cutplane, kind.estimator)(**{name: "no such thing"})
    if kind.estimator == "ChainTagger" and name == "method":
        model.set_params(kernel="rbf")
    with pytest.raises(ValueError, match=name) as error:
        model.fit(X, [0, 1, 0, 1], **({"lengths": [2, 2]} if kind.name == "chain" else {}))
    listed = re.findall(r"'(\w+)'", str(error.value))
    assert set(parameter_of(kind.estimator, name).choices) == set(listed)


def test_kinds_by_flags():
    assert chosen(["a", "b"]) is DEFAULT
    assert chosen(["--kernel=rbf"]).estimator == "SVC"
    assert chosen(["--regression", "--kernel", "rbf"]).estimator == "SVR"
    assert len({(kind.estimator, kind.task) for kind in KINDS}) == len(KINDS)


def test_two_flags_may_choose_a_kind(capsys):
    for words, wanted in (
        (["--regression", "--kernel", "rbf", "--epsilon", "0.2"], "SVR"),
        (["--regression", "--kernel=rbf"], "SVR"),
        (["--regression", "--loss", "huber"], "LinearSVR"),
        (["--kernel", "rbf"], "SVC"),
        (["--loss", "hinge"], "LinearSVC"),
    ):
        arguments = ["train", *words, "data", "model"]
        assert make_parser(arguments).parse_args(arguments).kind.estimator == wanted
    assert main(["train", "--regression", "--cache-size", "1", "d", "m"]) == 2
    assert "it belongs to --regression --kernel" in capsys.readouterr().err
    assert main(["train", "--regression", "--help"]) == 0
    assert capsys.readouterr().out.count("--regression  ") == 1


def test_both_spellings_and_n_jobs():
    arguments = ["train", "--max_iter=3", "--n_jobs", "2", "d", "m_odel"]
    args = make_parser(arguments).parse_args(arguments)
    assert parameters_given(args) == {"max_iter": 3, "n_jobs": 2} and args.model == "m_odel"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--maxiter", "3", "d", "m"], "unknown flag --maxiter; did you mean --max-iter?"),
        (["train", "--xyz", "d", "m"], "unknown flag --xyz; see cutplane train --help"),
        (["train", "--weighting", "pairs", "d", "m"], "it belongs to --ranking"),
        (["train", "--ranking", "--ordinal", "d", "m"], "not allowed with argument"),
        (["train", "--ranking", "--loss", "hinge", "d", "m"], "belongs to --chain, --regression"),
        (["train", "--loss", "huge", "d", "m"], "invalid choice: 'huge'"),
        (["train", "--C", "0", "d", "m"], "must be a number above 0, got '0'"),
        (["train", "--C", "-1", "d", "m"], "must be a number above 0, got '-1'"),
        (["train", "--C", "nan", "d", "m"], "must be a number above 0, got 'nan'"),
        (["train", "--C", "inf", "d", "m"], "must be a number above 0, got 'inf'"),
        (["train", "--tol", "-1", "d", "m"], "must be a number, 0 or more, got '-1'"),
        (["train", "--max-iter", "0", "d", "m"], "must be an integer above 0"),
        (["train", "--max-iter", "x", "d", "m"], "must be an integer above 0, got 'x'"),
        (["train", "--threads", "0", "d", "m"], "must be a number of threads"),
        (["train", "--class-weight", "heavy", "d", "m"], "must be 'balanced' or factors"),
        (["train", "--one-class", "--nu", "2", "d", "m"], "must be a number above 0 and up to 1"),
        (["train", "--kernel", "rbf", "--gamma", "tiny", "d", "m"], "must be a number"),
        (["train", "--regression", "--quantile", "1", "d", "m"], "must be a number between 0 and"),
        (["train", "--regression", "--quantile", "0.5,", "d", "m"], "between 0 and 1, got ''"),
        (["train", "--regression", "--epsilon", "-1", "d", "m"], "must be a number, 0 or more"),
        (["train", "--quantile", "0.5", "d", "m"], "it belongs to --regression"),
        (
            ["train", "--regression", "--quantile", "0.5", "--loss", "huber", "d", "m"],
            "--quantile goes with --loss quantile, not with huber",
        ),
        (
            ["train", "--regression", "--quantile", "0.5", "--epsilon", "1", "d", "m"],
            "--epsilon has no meaning for --loss quantile",
        ),
        (["train", "d"], "required: MODEL"),
        (["train", "d", "m", "extra"], "too many arguments: extra"),
        (["predict", "--outputs", "x", "d", "m"], "did you mean --output?"),
        (["path", "--C", "1,x", "--validation", "v", "d", "m"], "must be a number above 0"),
        (["completion", "csh"], "invalid choice"),
        (["trian", "d", "m"], "unknown command trian; did you mean train?"),
        (["xyz"], "unknown command xyz; see cutplane --help"),
        (["predict", "d"], "usage: cutplane predict [flags] DATA MODEL [OUT]\n"),
        (["svm_learn", "d"], "usage: cutplane svm_learn [flags] DATA MODEL\n"),
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
