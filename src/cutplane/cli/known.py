"""Commands that people know: SVM-light's family and liblinear, with their flags and files.

``cutplane svm_learn -t 2 -g 0.05 -c 1 train.dat model`` does what svm_learn does, with our solvers
and a certificate, and says which command of ours is the same. A program is a table of its flags and
a function that turns their values into a kind of model and its parameters; C is converted from what
the program means by it, see ``conventions``.
"""

from __future__ import annotations

import argparse
import logging
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..reporting.text import print_facts
from .errors import CommandError, ExitCode, UsageError
from .evaluate import quantiles_of
from .inputs import Table, in_memory, label_text, read_table, whole_labels
from .kinds import KINDS, Kind, Task
from .measures import judge
from .outputs import check_target, output_file, report_stream, save
from .parameters import parameter_of
from .parser import (
    Argument,
    Convert,
    Parser,
    add_arguments,
    count,
    finite_number,
    number_from_zero,
    positive_number,
)
from .predict import Answers, answer, answer_lines, applied, load_any, parts_of
from .train import data_facts, fit, make_model, model_facts, note_queries

logger = logging.getLogger("cutplane")

# -- tables -------------------------------------------------------------------


@dataclass(frozen=True)
class Flag:
    """A flag of a program."""

    meaning: str
    default: Any = None
    type: Convert = str
    choices: tuple[str, ...] = ()
    idle: str = ""  # if the flag has no meaning here, the reason
    switch: bool = False  # whether the flag has no value


Values = dict[str, Any]  # the values of the flags, by flag
Wanted = tuple[str, dict[str, Any]]  # the name of one of KINDS, and its parameters


@dataclass(frozen=True)
class Learner:
    """A program that trains."""

    flags: dict[str, Flag]
    wanted: Callable[[Values, Table], Wanted]  # what the flags ask for
    svmlight: bool = True  # whether it writes SVM-light's text; otherwise it writes our format


@dataclass(frozen=True)
class Classifier:
    """A program that predicts."""

    flags: dict[str, Flag]
    tell: Callable[[Table, Answers], list[str]]  # what it prints
    task: Task
    predictions: str = ""  # default name of the file; empty if the user must give one


SOLVER = "the solver is another one"
REPORT = "the report is always the same"
LINEAR = "it is for kernels, and this program's models are linear here"

KERNEL_FLAGS = {
    "-t": Flag("kernel: 0 linear, 1 polynomial, 2 RBF, 3 sigmoid", "0", choices=tuple("0123")),
    "-d": Flag("degree of the polynomial kernel", 3, count),
    "-g": Flag("gamma of the RBF kernel", 1.0, number_from_zero),
    "-s": Flag("factor s in the kernels (s a*b + r)^d and tanh(s a*b + r)", 1.0, finite_number),
    "-r": Flag("constant r in these kernels", 1.0, finite_number),
    "-u": Flag("parameter of a user's own kernel", idle="there are no such kernels here"),
}
LINEAR_FLAGS = {
    "-t": Flag("kernel: 0 linear", "0", choices=("0",)),
    **{flag: Flag(KERNEL_FLAGS[flag].meaning, idle=LINEAR) for flag in ("-d", "-g", "-s", "-r")},
    "-u": KERNEL_FLAGS["-u"],
}
SOLVER_FLAGS = {
    "-q": Flag("size of the working set", idle=SOLVER),
    "-n": Flag("new variables per iteration", idle=SOLVER),
    "-h": Flag("iterations until shrinking", idle=SOLVER),
    "-#": Flag("iterations without progress until it ends", idle=SOLVER),
    "-f": Flag("final optimality check", idle="the certificate is about all rows"),
    "-a": Flag("file for the alphas", idle="they are not written"),
    "-v": Flag("verbosity", idle=REPORT),
    "-y": Flag("verbosity of the inner solver", idle=REPORT),
}
STRUCT_FLAGS = {
    **LINEAR_FLAGS,
    **SOLVER_FLAGS,
    "-w": Flag("algorithm", idle=SOLVER),
    "-p": Flag("norm of the slacks, 1", "1", choices=("1",)),
    "-o": Flag("rescaling, 2 margin", "2", choices=("2",)),
    "-k": Flag("new constraints until the inner problem is solved", idle=SOLVER),
    "-m": Flag("size of the kernel cache in MB", idle=LINEAR),
}


# -- what the flags ask for ----------------------------------------------------


def _svm_learn(values: Values, table: Table) -> Wanted:
    C = values["-c"]
    if C is None:
        C = 1.0 / _mean_square(table)
    kernel = ("linear", "poly", "rbf", "sigmoid")[int(values["-t"])]
    common: dict[str, Any] = {"C": C}
    if values["-z"] == "p":
        if kernel != "linear":
            raise UsageError("-z p is not available with a kernel; leave -t out, or give -t 0")
        _, pairs, ranked, _ = _pairs(table)
        # The sum over pairs times c is the mean over pairs times C times the rows.
        return "ranking", {"C": C * pairs / ranked, "stopping": "epsilon", "tol": values["-e"]}
    if values["-z"] == "c":
        _check_signs(table)
        if values["-j"] != 1.0:
            common["class_weight"] = {
                float(label): values["-j"] if label > 0 else 1.0 for label in np.unique(table.y)
            }
    else:
        common["epsilon"] = values["-w"]
    if kernel == "linear":
        common |= {"tol": values["-e"], "stopping": "epsilon"}
        if values["-b"] == "0":
            common["fit_intercept"] = False
        return "classification" if values["-z"] == "c" else "regression", common
    if values["-b"] == "0":
        raise UsageError("-b 0 is not available with a kernel; leave it out")
    common |= {
        "kernel": kernel,
        "gamma": values["-g"] if kernel == "rbf" else values["-s"],
        "tol": values["-e"],
        "stopping": "kkt",
        "cache_size": values["-m"],
    }
    if kernel != "rbf":
        common["coef0"] = values["-r"]
    if kernel == "poly":
        common["degree"] = values["-d"]
    return "kernel" if values["-z"] == "c" else "kernel-regression", common


PERF_LOSSES = {
    "1": "f1", "2": "error_rate", "3": "prbep", "4": "precision_at_k", "5": "recall_at_k",
    "10": "roc_auc",
}  # fmt: skip


def _svm_perf_learn(values: Values, table: Table) -> Wanted:
    _check_signs(table)
    measure = PERF_LOSSES[values["-l"]]
    # c times the loss in per cent is C times the loss times the rows. The tolerance is alike.
    found: dict[str, Any] = {
        "measure": measure,
        "C": values["-c"] * 100.0 / table.weights.sum(),
        "tol": values["-e"] / 100.0,
        "stopping": "epsilon",
    }
    if measure in ("f1", "error_rate"):
        found |= {"intercept_scaling": 1.0} if values["--b"] == "1" else {"fit_intercept": False}
    if measure in ("precision_at_k", "recall_at_k") and values["--p"] is not None:
        found["k"] = values["--p"]
    return "measure", found


def _svm_rank_learn(values: Values, table: Table) -> Wanted:
    queries, pairs, ranked, busy = _pairs(table)
    found: dict[str, Any] = {"stopping": "epsilon"}
    if values["-l"] == "1":  # all swapped pairs, divided by the queries
        found |= {"C": values["-c"] * pairs / (queries * ranked)}
        found |= {"tol": values["-e"] * queries / pairs}
    else:  # the mean over queries of the share of swapped pairs
        found |= {"C": values["-c"] * busy / (queries * ranked), "weighting": "queries"}
        found |= {"tol": values["-e"] * queries / busy}
    return "ranking", found


def _svm_hmm_learn(values: Values, table: Table) -> Wanted:
    sequences = 1 if table.qid is None else len(np.unique(table.qid))
    found = {"C": values["-c"] / sequences, "tol": values["-e"], "stopping": "epsilon"}
    if values["--t"] == "2":
        found["order"] = 2
    return "chain", found


LIBLINEAR_LOSSES = {
    "0": "logistic", "1": "squared_hinge", "2": "squared_hinge", "3": "hinge", "7": "logistic",
    "11": "squared_epsilon_insensitive", "12": "squared_epsilon_insensitive",
    "13": "epsilon_insensitive",
}  # fmt: skip
LIBLINEAR_MISSING = {"5": "an L1 norm", "6": "an L1 norm", "21": "a linear one-class problem"}


def _liblinear_train(values: Values, table: Table) -> Wanted:
    if values["-s"] in LIBLINEAR_MISSING:
        raise UsageError(
            f"-s {values['-s']} is {LIBLINEAR_MISSING[values['-s']]}, which cutplane does not have"
        )
    found: dict[str, Any] = {"C": values["-c"]}
    if values["-s"] == "4":
        found["multi_class"] = "crammer_singer"
    else:
        found["loss"] = LIBLINEAR_LOSSES[values["-s"]]
    if values["-B"] <= 0.0:
        found["fit_intercept"] = False
    elif not values["-R"]:
        found["intercept_scaling"] = values["-B"]
    if values["-m"] is not None:
        found["n_jobs"] = values["-m"]
    if int(values["-s"]) >= 11:
        return "regression", found | {"epsilon": values["-p"]}
    factors = {float(flag[2:]): value for flag, value in values.items() if _factor_flag(flag)}
    if factors:
        found["class_weight"] = factors
    return "classification", found


def _factor_flag(word: str) -> bool:
    """Whether a word is liblinear's flag -wLABEL, which gives the factor of a class."""
    return re.fullmatch(r"-w[-+]?\d+(\.\d+)?", word) is not None


def _check_signs(table: Table) -> None:
    """Check that the labels are two classes, whose signs differ."""
    if np.any(table.y == 0.0):
        raise CommandError(
            f"{table.name}: a label is 0, which means a row without a label; these programs learn "
            "from them (transduction), cutplane does not: remove these rows"
        )
    labels = np.unique(table.y)
    if len(labels) != 2 or not labels[0] < 0.0 < labels[1]:
        raise CommandError(
            f"{table.name}: the labels must be -1 and 1, got "
            f"{', '.join(map(label_text, labels[:8].tolist()))}; cutplane train takes others"
        )


def _mean_square(table: Table) -> float:
    """The mean of x*x over the rows."""
    X = in_memory(table).X
    squares = X.multiply(X).sum() if hasattr(X, "multiply") else np.square(X).sum()
    return max(float(squares) / max(table.rows, 1), np.finfo(float).tiny)


def _pair_counts(table: Table, scores: np.ndarray) -> Any:
    """Comparable, swapped and tied pairs of each query."""
    from .._checks import query_codes
    from ..risks.pairs import pair_statistics

    return pair_statistics(table.y, scores, query_codes(table.qid, len(table.y)))


def _pairs(table: Table) -> tuple[int, int, float, int]:
    """Numbers of queries, of comparable pairs, of rows in queries with a pair, of such queries."""
    counts = _pair_counts(table, table.y)
    if not counts.comparable.any():
        raise CommandError(f"{table.name}: no two rows of a query have different targets")
    busy = counts.comparable > 0
    query = 0 if table.qid is None else np.unique(table.qid, return_inverse=True)[1]
    ranked = float((table.weights * busy[query]).sum())
    return len(busy), int(counts.comparable.sum()), ranked, int(busy.sum())


LEARNERS = {
    "svm_learn": Learner(
        {
            "-z": Flag("c classification, r regression, p ranking", "c", choices=("c", "r", "p")),
            "-c": Flag("C, the weight of the sum of the losses, 1 / (mean of x*x) if not given",
                       type=positive_number),
            "-w": Flag("epsilon of regression", 0.1, number_from_zero),
            "-j": Flag("factor on the C of positive rows", 1.0, positive_number),
            "-b": Flag("1 for a bias, 0 for none", "1", choices=("0", "1")),
            "-e": Flag("violation of the conditions at which it ends", 0.001, positive_number),
            "-m": Flag("size of the kernel cache in MB", 40.0, positive_number),
            **KERNEL_FLAGS,
            **SOLVER_FLAGS,
            "-i": Flag("leave out inconsistent rows", idle="all rows count"),
            "-l": Flag("file for the labels of transduction", idle="there is no transduction"),
            "-x": Flag("leave-one-out estimates", idle="train --cv measures models"),
            "-o": Flag("parameter of these estimates", idle="train --cv measures models"),
            "-k": Flag("parameter of these estimates", idle="train --cv measures models"),
            "-p": Flag("share of positive rows in transduction", idle="there is no transduction"),
        },
        _svm_learn,
    ),
    "svm_perf_learn": Learner(
        STRUCT_FLAGS | {
            "-c": Flag("C, the weight of the loss in per cent", 0.01, positive_number),
            "-l": Flag("1 F1, 2 error rate, 3 PRBEP, 4 Prec@k, 5 Rec@k, 10 ROC area", "2",
                       choices=tuple(PERF_LOSSES)),
            "-e": Flag("tolerance of the loss in per cent", 0.1, positive_number),
            "--b": Flag("1 for a bias that is regularised, 0 for none", "1", choices=("0", "1")),
            "--p": Flag("k, in units of the positive rows", type=positive_number),
            "--i": Flag("how basis vectors are chosen", idle=LINEAR),
            "--k": Flag("number of basis vectors", idle=LINEAR),
            "--r": Flag("rows that basis vectors are chosen from", idle=LINEAR),
            "--s": Flag("how basis vectors are used", idle=LINEAR),
            "--t": Flag("sparse cuts", idle=SOLVER),
        },
        _svm_perf_learn,
    ),
    "svm_rank_learn": Learner(
        STRUCT_FLAGS | {
            "-c": Flag("C, the weight of the mean loss of the queries", 0.01, positive_number),
            "-l": Flag("1 swapped pairs, 2 part of a query's pairs that are swapped", "1",
                       choices=("1", "2")),
            "-e": Flag("tolerance of the loss", 0.001, positive_number),
        },
        _svm_rank_learn,
    ),
    "svm_hmm_learn": Learner(
        STRUCT_FLAGS | {
            "-c": Flag("C, the weight of the mean loss of the sequences", 0.01, positive_number),
            "-l": Flag("loss, the wrong tags of a sequence", idle="there is this one loss"),
            "-e": Flag("tolerance of the loss", 0.1, positive_number),
            "--t": Flag("how many tags before it a tag depends on", "1", choices=("1", "2")),
            "--e": Flag("how many tags the emissions depend on, 0", "0", choices=("0",)),
            "--b": Flag("width of the beam", idle="the search for the best tags is exact"),
        },
        _svm_hmm_learn,
        svmlight=False,
    ),
    "liblinear-train": Learner(
        {
            "-s": Flag("solver: 0 and 7 logistic, 1 and 2 squared hinge, 3 hinge, 4 Crammer and "
                       "Singer, 11 and 12 squared epsilon-insensitive, 13 epsilon-insensitive", "1",
                       choices=(*LIBLINEAR_LOSSES, "4", *LIBLINEAR_MISSING)),
            "-c": Flag("C, the weight of the sum of the losses", 1.0, positive_number),
            "-p": Flag("epsilon of regression", 0.1, number_from_zero),
            "-e": Flag("tolerance", idle="the fit ends when its gap is 0.1 % of the objective"),
            "-B": Flag("value of a feature for the bias, none below 0", -1.0, finite_number),
            "-R": Flag("do not regularise the bias", switch=True),
            "-v": Flag("cross-validation with so many parts, and no model", type=count),
            "-m": Flag("threads", type=count),
            "-q": Flag("print nothing", switch=True),
        },
        _liblinear_train,
        svmlight=False,
    ),
}  # fmt: skip


# -- what is said about predictions --------------------------------------------


def _tell_signs(table: Table, answers: Answers) -> list[str]:
    truth, guess = table.y > 0.0, _scores(answers) > 0.0
    right, total = int(np.sum(truth == guess)), len(truth)
    hits = int(np.sum(truth & guess))
    return [
        f"Accuracy on test set: {_part(right, total)} ({right} correct, {total - right} incorrect, "
        f"{total} total)",
        f"Precision/recall on test set: {_part(hits, guess.sum())}/{_part(hits, truth.sum())}",
    ]


def _scores(answers: Answers) -> np.ndarray:
    assert answers.scores is not None
    return answers.scores


def _part(number: float, total: float) -> str:
    return f"{100.0 * number / total:.2f}%" if total else "nan%"


def _tell_measures(table: Table, answers: Answers) -> list[str]:
    truth = np.where(table.y > 0.0, 1, -1)
    found = judge(Task.CLASSES, truth, answers, classes=np.array([-1, 1])).measures()
    titles = {
        "Accuracy": "accuracy", "Precision": "precision", "Recall": "recall", "F1": "f1",
        "PRBEP": "prbep", "ROCArea": "roc_auc", "AvgPrec": "average_precision",
    }  # fmt: skip
    return [
        f"{title:<10}: {'nan' if value is None else f'{100.0 * value:6.2f}'}"
        for title, value in ((title, found.get(name)) for title, name in titles.items())
    ]


def _tell_rankings(table: Table, answers: Answers) -> list[str]:
    counts = _pair_counts(table, _scores(answers))
    wrong = counts.swapped + 0.5 * counts.tied
    losses = wrong / np.maximum(counts.comparable, 1)
    return [
        *_average(losses),
        f"Total Num Swappedpairs  : {int(np.round(wrong).sum()):6d}",
        f"Avg Swappedpairs Percent: {100.0 * losses.mean():6.2f}",
    ]


def _average(losses: np.ndarray) -> list[str]:
    """The two lines about the losses of rankings or sequences."""
    wrong, total = int(np.count_nonzero(losses)), len(losses)
    return [
        f"Average loss on test set: {losses.mean():.4f}",
        f"Zero/one-error on test set: {_part(wrong, total)} ({total - wrong} correct, {wrong} "
        f"incorrect, {total} total)",
    ]


def _tell_sequences(table: Table, answers: Answers) -> list[str]:
    assert table.qid is not None and answers.labels is not None
    _, sequence = np.unique(table.qid, return_inverse=True)
    wrong = answers.labels != whole_labels(table.y)
    return [
        *_average(np.bincount(sequence, wrong)),
        f"Tokens wrong: {_part(wrong.sum(), len(wrong))}",
    ]


def _tell_liblinear(table: Table, answers: Answers) -> list[str]:
    if answers.labels is None:
        return _tell_numbers(table.y, _scores(answers), "Mean squared error = {:g} (regression)",
                             "Squared correlation coefficient = {:g} (regression)")  # fmt: skip
    right = int(np.sum(answers.labels == whole_labels(table.y)))
    total = len(table.y)
    return [f"Accuracy = {100.0 * right / total:g}% ({right}/{total})"]


def _tell_numbers(truth: np.ndarray, values: np.ndarray, error: str, squared: str) -> list[str]:
    spread = np.ptp(truth) > 0.0 and np.ptp(values) > 0.0
    correlation = np.corrcoef(truth, values)[0, 1] if spread else np.nan
    return [error.format(np.mean((truth - values) ** 2)), squared.format(correlation**2)]


CLASSIFY_FLAGS = {
    "-f": Flag("format of the predictions, 1 the value of each row", "1", choices=("0", "1")),
    "-v": Flag("verbosity", idle=REPORT),
    "-y": Flag("verbosity of the inner solver", idle=REPORT),
}

CLASSIFIERS = {
    "svm_classify": Classifier(CLASSIFY_FLAGS, _tell_signs, Task.CLASSES, "svm_predictions"),
    "svm_perf_classify": Classifier(
        CLASSIFY_FLAGS, _tell_measures, Task.CLASSES, "svm_struct_predictions"
    ),
    "svm_rank_classify": Classifier(
        CLASSIFY_FLAGS, _tell_rankings, Task.RANKING, "svm_struct_predictions"
    ),
    "svm_hmm_classify": Classifier(
        CLASSIFY_FLAGS, _tell_sequences, Task.SEQUENCES, "svm_struct_predictions"
    ),
    "liblinear-predict": Classifier(
        {
            "-b": Flag("1 for probabilities", "0", choices=("0", "1")),
            "-q": Flag("print nothing", switch=True),
        },
        _tell_liblinear,
        Task.CLASSES,
    ),
}


# -- commands -----------------------------------------------------------------


def add_flags(parser: Parser, words: Sequence[str]) -> None:
    """Add the flags of the program that is the first word."""
    name = words[0]
    program: Any = LEARNERS.get(name) or CLASSIFIERS[name]
    flags = dict(program.flags)
    if name == "liblinear-train":
        factor = Flag("factor on C of this class, such as -w1", type=positive_number)
        flags |= {word: factor for word in words if _factor_flag(word)}
    parser.hint = _nearest(flags)
    parser.description = (
        f"What {name} does, with its flags and files. One line on standard error\n"
        "says which command of cutplane does the same."
    )
    parser.add_argument("-?", action="help", help="Show this help and exit.")
    optional = "?" if name == "liblinear-train" else ""
    arguments = [
        Argument("DATA", "File with the rows."),
        Argument(f"MODEL{optional}", "File with the model."),
    ]
    if name in CLASSIFIERS:
        optional = "?" if program.predictions else ""
        arguments.append(
            Argument(f"PREDICTIONS{optional}", "File to write.", default=program.predictions)
        )
    add_arguments(parser, *arguments)
    for flag, entry in flags.items():
        _add_flag(parser, flag, entry)
    parser.set_defaults(
        run=_learn if name in LEARNERS else _classify, program=program, flag_table=flags,
        verbose=False, zero_based=False, sort=False, max_features=None, n_features=None,
        threads=None,
    )  # fmt: skip


def _nearest(flags: dict[str, Flag]) -> Callable[[str], str]:
    """The message for a flag that a program does not have."""

    def hint(flag: str) -> str:
        if flag == "-C" and "-R" in flags:
            return ", the search for C, is not here; see cutplane path --help"
        letter = flag.lstrip("-")[:1].lower()
        near = [name for name in flags if name.lstrip("-").lower() == letter]
        known = f"did you mean {near[0]}, {flags[near[0]].meaning}?" if near else ""
        return f"; {known or 'the flags are ' + ' '.join(flags)}"

    return hint


def _add_flag(parser: Parser, flag: str, entry: Flag) -> None:
    note = "" if entry.default is None else f" (default: {entry.default})"
    if entry.idle:
        note = f" (no meaning here: {entry.idle})"
    options: dict[str, Any] = {"action": "store_true"}
    if not entry.switch:
        options = {"type": entry.type, "default": entry.default, "metavar": "X"}
        options |= {"choices": entry.choices} if entry.choices else {}
    help_text = (entry.meaning + note).replace("%", "%%")
    parser.add_argument(flag, dest=f"flag {flag}", help=help_text, **options)


def _values(args: argparse.Namespace) -> Values:
    """The values of the flags. Prints a message for flags that have no meaning here."""
    values = {flag: getattr(args, f"flag {flag}") for flag in args.flag_table}
    for flag, entry in args.flag_table.items():
        if entry.idle and values[flag] is not None:
            print(f"cutplane {args.command}: {flag} has no meaning here: {entry.idle}",
                  file=sys.stderr)  # fmt: skip
    return values


def _tell_equivalent(args: argparse.Namespace, words: Sequence[str]) -> None:
    line = shlex.join(["cutplane", *words])
    print(f"cutplane {args.command}: the same as {line}", file=sys.stderr)


def _learn(args: argparse.Namespace) -> int:
    program: Learner = args.program
    values = _values(args)
    folds = values.get("-v") if args.command == "liblinear-train" else None
    target = args.model or f"{Path(args.data).name}.model"
    if folds is None:
        check_target(target, args.data, binary=not program.svmlight)
    table = read_table(args.data, args)
    name, parameters = program.wanted(values, table)
    kind = next(kind for kind in KINDS if kind.name == name)
    words = [*words_of(kind, parameters), args.data, target]
    _tell_equivalent(args, ["train", *([] if folds is None else ["--cv", str(folds)]), *words])
    note_queries(table, kind)
    quiet = values.get("-q") is True
    stream = report_stream(target)
    model = make_model(kind, parameters)
    if folds is not None:
        return _cross_validate(model, kind, table, folds)
    if not quiet:
        print_facts(data_facts(table, kind), stream)
    done = fit(model, kind, table)
    if program.svmlight:
        from ..models import save_svmlight_model

        with output_file(target) as file:
            save_svmlight_model(done.model, file)
    else:
        save(done.model, target)
    if not quiet:
        print_facts(model_facts(done, kind, table, target), stream)
    return stream.code(done.tell(args.command))


def words_of(kind: Kind, parameters: dict[str, Any]) -> list[str]:
    """A kind and its parameters as flags of ``train``."""
    words = [flag for flag in kind.flags if flag.removeprefix("--") not in parameters]
    for name, value in parameters.items():
        flag = parameter_of(kind.estimator, name).flags[-1]
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag.removeprefix('--')}")
        elif isinstance(value, dict):
            pairs = (f"{label_text(label)}:{factor:g}" for label, factor in value.items())
            words.append(f"{flag}={','.join(pairs)}")
        else:
            words += [flag, f"{value:.12g}" if isinstance(value, float) else str(value)]
    return words


def _cross_validate(model: Any, kind: Kind, table: Table, folds: int) -> int:
    from .cross_validation import cross_validated

    found = cross_validated(model, kind, table, folds)
    if kind.task is Task.VALUES:
        lines = _tell_numbers(table.y, found.predictions,
                              "Cross Validation Mean squared error = {:g}",
                              "Cross Validation Squared correlation coefficient = {:g}"
                              )  # fmt: skip
    else:
        right = np.mean(found.predictions == whole_labels(table.y))
        lines = [f"Cross Validation Accuracy = {100.0 * right:g}%"]
    print("\n".join(lines))
    return ExitCode.OK


def _check_model(args: argparse.Namespace, program: Classifier, model: Any, kind: Kind) -> None:
    """Refuse a model whose answers the program cannot write."""
    tags = program.task is Task.SEQUENCES
    several = ""  # if the model has several scores per row, why
    if len(quantiles_of(model.get_params(deep=False))) > 1:
        several = " of several quantiles"
    elif kind.task is Task.CLASSES and args.command != "liblinear-predict":
        several = f" of {len(model.classes_)} classes" if len(model.classes_) > 2 else ""
    if several or kind.task is Task.LABELS or tags != (kind.task is Task.SEQUENCES):
        raise UsageError(
            f"{args.model} holds a {type(model).__name__}{several}, which is not for "
            f"{args.command}; cutplane predict takes it"
        )


def _classify(args: argparse.Namespace) -> int:
    program: Classifier = args.program
    values = _values(args)
    probable = values.get("-b") == "1"
    check_target(args.predictions, args.data, args.model)
    model, kind = load_any(args.model)
    if probable and not hasattr(model, "predict_proba"):
        raise UsageError(
            f"-b 1: {args.model} holds a {type(model).__name__} without probabilities; "
            "train it with -s 0"
        )
    labels = program.task is Task.SEQUENCES or args.command == "liblinear-predict"
    labels = labels and kind.task is not Task.VALUES
    form = "labels" if labels else "scores"
    _check_model(args, program, model, kind)
    table, answers, _ = applied(model, kind, parts_of(args.data, args, kind, model))
    chosen = answers.get(form)
    if chosen is None:
        raise UsageError(f"{args.model} holds a {type(model).__name__}, which has no {form}")
    told = "probabilities" if probable else form
    _tell_equivalent(args, ["predict", "--output", told, args.data, args.model, args.predictions])
    lines = list(answer_lines(chosen, form))
    if probable:  # as liblinear writes them: labels in the first line, then per row
        rows = read_table(args.data, args).aligned(int(model.n_features_in_))[0]
        names = " ".join(label_text(label) for label in model.classes_.tolist())
        both = zip(lines, answer_lines(_scores(answer(model, kind, rows, told)), told), strict=True)
        lines = [f"labels {names}", *(f"{label} {shares}" for label, shares in both)]
    with output_file(args.predictions) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    if values.get("-q") is not True:
        print("\n".join(program.tell(table, answers)))
    return ExitCode.OK
