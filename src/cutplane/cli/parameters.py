"""The parameters of the estimators as flags: one entry each, with the help that people read.

Which estimator has which parameter, and its default, is read from the signatures in the source:
importing the estimators would bring scikit-learn and numba, and ``--help`` should not wait for
these. Where the same name means different things the entries name their estimators.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from .._lazy import modules_of
from .errors import UsageError
from .kinds import DEFAULT, KINDS, Kind, chosen
from .parser import (
    Convert,
    Parser,
    bounds,
    class_factors,
    count,
    finite_number,
    number_from_zero,
    or_none,
    positive_number,
    quantiles,
    rows_or_share,
    scale_or_number,
    seed_number,
    share,
    template_file,
    threads,
)

MODEL, KERNEL, STOP, HOW = (
    "parameters of {}",
    "the kernel of {}",
    "when to stop",
    "how to compute it",
)


@dataclass(frozen=True)
class Parameter:
    """A flag for a parameter of estimators; the flag of max_iter is --max-iter."""

    name: str
    group: str  # title of the part of the help in which it stands
    help: str
    type: Convert = str  # makes a value of the text
    choices: tuple[Any, ...] = ()
    metavar: str = "N"  # what the help calls the value
    unset: str = ""  # if the default is None, what it means
    of: tuple[str, ...] = ()  # the estimators that the entry is for; empty for all others

    @property
    def flags(self) -> tuple[str, ...]:
        """The flag, and another name for it if there is one."""
        flag = "--" + self.name.replace("_", "-")
        return ("--threads", flag) if self.name == "n_jobs" else (flag,)


CHAIN, SAMPLED, WITH_KERNEL = "ChainTagger", "SampledCutSVC", ("SVC", "SVR", "OneClassSVM")
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
KERNEL_HELP = (
    "linear is x*z, poly is (gamma x*z + coef0)^degree, rbf is exp(-gamma |x - z|^2), sigmoid is "
    "tanh(gamma x*z + coef0). For precomputed the rows of DATA are kernel values."
)
STOPPING = ("relative", "absolute", "epsilon")
STOPPING_HELP = (
    "What --tol limits: the gap as a part of the objective (relative), the gap itself (absolute), "
    "or the gap in units of the mean loss (epsilon, the rule of SVM-perf)"
)
SAMPLING_HELP = (
    "exact computes every cut from all {0}, and the time grows with their square. linear takes a "
    "sample of the {0} with a loss for each cut: the time grows with their number, and the lower "
    "bound is an estimate. constant knows samples only: the time does not grow, and the objective "
    "is an estimate, too."
)
CALIBRATIONS = ("sigmoid", "isotonic")
CALIBRATE_HELP = (
    "Also fit probabilities of the classes, to the scores of rows that were left out in turn, a "
    "fifth at a time: by a sigmoid of the score (Platt), or by any function that never falls."
)

PARAMETERS = (
    # -- the model
    Parameter("measure", MODEL, "roc_auc: positive rows above negative ones. partial_roc_auc: the "
              "same at small false positive rates. recall_at_fpr: the same, with a threshold that "
              "keeps the rate. average_precision: mean precision at the positive rows. "
              "precision_at_k, recall_at_k: the k rows with the highest scores. prbep: the value "
              "at which precision and recall are equal. f1, fbeta, jaccard, g_mean, matthews: of "
              "the positive class, which is the larger label. balanced_error: the mean of both "
              "classes' error rates. absolute_error, relative_absolute_error, nkld, q_beta: how "
              "well the share of positives is predicted. error_rate: the plain SVM.",
              choices=("roc_auc", "partial_roc_auc", "recall_at_fpr", "average_precision",
                       "precision_at_k", "recall_at_k", "prbep", "f1", "fbeta", "jaccard",
                       "balanced_error", "g_mean", "matthews", "absolute_error",
                       "relative_absolute_error", "nkld", "q_beta", "error_rate")),
    Parameter("C", MODEL, "Weight of the errors on the training data against the size of the "
              "weights. A larger C follows the data more closely, a smaller one gives a simpler "
              "model. The report says what other tools call this C.", positive_number, metavar="C"),
    Parameter("objective", MODEL, "What is trained for: pairs of rows in the right order, the "
              "average precision of the rows with a target above 0, or NDCG with the targets as "
              "grades.", choices=("pairs", "average_precision", "ndcg"), of=("RankSVM",)),
    Parameter("k", MODEL, "Positions that count for ndcg.", count, metavar="K", unset="all",
              of=("RankSVM",)),
    Parameter("k", MODEL, "Rows that precision_at_k and recall_at_k look at: an integer is a "
              "number of rows, a number with a point is multiplied by the number of positive rows.",
              rows_or_share, metavar="K", unset="0.5 for precision, 2.0 for recall"),
    Parameter("template", MODEL, "DATA is a file in columns, a token a line and an empty line "
              "after a sentence, with the tag in the last column (CoNLL). FILE says which columns "
              "of which neighbours make features, in lines such as U01:%x[-1,0] or "
              "U02:%x[0,0]/%x[0,1], as for CRF++: %x[ROW,COLUMN], rows from the token, columns "
              "from 0. The model keeps it.", template_file, metavar="FILE",
              unset="DATA has numbers of features"),
    Parameter("min_count", MODEL, "With --template: how often a feature must occur in DATA to "
              "have a weight.", count),
    Parameter("loss", MODEL, "What an error costs: hamming counts the wrong tokens, zero_one the "
              "sequences in which any token is wrong.", choices=("hamming", "zero_one"),
              of=(CHAIN,)),
    Parameter("loss", MODEL, "What an error costs: epsilon_insensitive is its size beyond "
              "--epsilon, squared_epsilon_insensitive the square of that. quantile is the pinball "
              "loss of --quantile. huber is half the square up to --epsilon and grows like a line "
              "from there, so that outliers count less.",
              choices=("epsilon_insensitive", "squared_epsilon_insensitive", "quantile", "huber"),
              of=("LinearSVR",)),
    Parameter("quantile", MODEL, "Predict this quantile, a number between 0 and 1, such as 0.5 "
              "for the median; or several, as in 0.1,0.5,0.9, one column of predictions each. It "
              "sets --loss quantile.", quantiles, metavar="Q,..."),
    Parameter("crossing", MODEL, "What to do where a lower quantile of a row is predicted above a "
              "higher one: sort them, or allow it.", choices=("allow", "sort")),
    Parameter("loss", MODEL, "What an error costs: hinge is the usual SVM, squared_hinge punishes "
              "large errors more, logistic is logistic regression, huberised_hinge is the hinge "
              "with its corner rounded off.",
              choices=("hinge", "squared_hinge", "logistic", "huberised_hinge")),
    Parameter("beta", MODEL, "How many times as much recall counts, for fbeta and q_beta.",
              positive_number, unset="1"),
    Parameter("max_fpr", MODEL, "The largest false positive rate that counts, for partial_roc_auc "
              "and recall_at_fpr.", share, unset="0.1"),
    Parameter("confidence", MODEL, "The probability that the false positive rate is kept, for "
              "recall_at_fpr.", share, unset="0.95"),
    Parameter("weighting", MODEL, "Whether every pair of rows counts the same, so that long "
              "queries count more, or every query counts the same.", choices=("pairs", "queries")),
    Parameter("criterion", MODEL, "What the limits between the grades minimise on the training "
              "data: the mean distance from the true grade (absolute), or the number of wrong "
              "grades (zero_one).", choices=("absolute", "zero_one")),
    Parameter("epsilon", MODEL, "Errors smaller than this cost nothing; for --loss huber, the "
              "error from which on the loss is linear.", number_from_zero, of=("LinearSVR",)),
    Parameter("epsilon", MODEL, "Errors smaller than this cost nothing.", number_from_zero),
    Parameter("nu", MODEL, "At most this share of the training rows is taken for novelties. It is "
              "above 0 and up to 1.", share),
    Parameter("order", MODEL, "How many tags before a tag its score depends on. With 2, the "
              "search for the best tags takes as many times as long as there are tags.", int,
              choices=(1, 2)),
    Parameter("boundaries", MODEL, "Give the first and the last tag of a sequence weights of "
              "their own."),
    Parameter("fit_intercept", MODEL, "Train the bias b together with the weights, for "
              "measures of the predictions such as f1. Measures of the order of the rows do not "
              "depend on it, and it is always chosen after training.", of=("MeasureSVC",)),
    Parameter("fit_intercept", MODEL, "Add a bias b to the scores. It is not regularised, unless "
              "--intercept-scaling is given."),
    Parameter("intercept_scaling", MODEL, "Make the bias the weight of a constant feature of this "
              "value, so that it is regularised.", positive_number,
              unset="1, not regularised for error_rate", of=("MeasureSVC",)),
    Parameter("intercept_scaling", MODEL, "Make the bias the weight of a constant feature of this "
              "value, so that it is regularised, as in liblinear and in scikit-learn's LinearSVC.",
              positive_number, unset="not regularised"),
    Parameter("class_weight", MODEL, "Factors on the weights of the rows, by class, such as "
              "1:5,-1:1; or balanced, which gives all classes the same total.", class_factors,
              metavar="LABEL:FACTOR,...", unset="all 1"),
    Parameter("calibrate", MODEL, CALIBRATE_HELP, choices=CALIBRATIONS, unset="no probabilities"),
    Parameter("multi_class", MODEL, "What is solved for more than two classes: one problem per "
              "pair of classes (ovo), or one per class against all others (ovr).",
              choices=("ovo", "ovr"), of=("SVC",)),
    Parameter("multi_class", MODEL, "What is solved for more than two classes: one problem per "
              "class against all others (ovr), or one problem for all classes together: with the "
              "hinge loss (crammer_singer) or the logistic one (multinomial).",
              choices=("ovr", "crammer_singer", "multinomial"), of=("LinearSVC",)),
    Parameter("multi_class", MODEL, "What is solved for more than two classes: one problem per "
              "class against all others (ovr), or one problem for all classes together "
              "(crammer_singer).", choices=("ovr", "crammer_singer")),
    Parameter("coef_threshold", MODEL, "Keep the weights of at least this size only, in a sparse "
              "matrix, and drop the others as soon as a class or label has been solved: for many "
              "labels or classes with many features.", number_from_zero, unset="keep all"),
    Parameter("positive", MODEL, "Let no weight be negative: a larger value of a feature never "
              "lowers a score. The bias has no bounds."),
    Parameter("bounds", MODEL, "Bounds on the weights: two numbers for all features, such as "
              "0:inf or, with the sign =, --bounds=-1:1; or a file with a line 'LOW HIGH' per "
              "feature. inf is no bound.", bounds, metavar="LOW:HIGH|FILE", unset="none"),
    Parameter("decision_function_shape", MODEL, "For more than two classes: whether the scores "
              "are one per class (ovr) or one per pair of classes (ovo).", choices=("ovr", "ovo")),
    Parameter("break_ties", MODEL, "For more than two classes: predict the class with the highest "
              "score, not the one that most pairs of classes vote for."),
    # -- the kernel
    Parameter("kernel", KERNEL, "The kernel between tokens. " + KERNEL_HELP, choices=KERNELS,
              unset="none: scores are linear in the features", of=(CHAIN,)),
    Parameter("kernel", KERNEL, KERNEL_HELP, choices=KERNELS),
    Parameter("degree", KERNEL, "Exponent of the kernel poly.", count),
    Parameter("gamma", KERNEL, "Factor in the kernels rbf, poly and sigmoid: a number, or scale "
              "for 1 / (number of features * variance of the values), or auto for 1 / (number of "
              "features).", scale_or_number, metavar="scale|auto|N"),
    Parameter("coef0", KERNEL, "Constant term in the kernels poly and sigmoid.", finite_number),
    # -- when to stop
    Parameter("tol", STOP, "The fit ends when the gap between the objective and its lower bound "
              "is at most this, in the unit that --stopping says.", number_from_zero),
    Parameter("stopping", STOP, STOPPING_HELP + "; or how far the optimality conditions are "
              "violated (kkt, the rule of libsvm).",
              choices=(*STOPPING, "kkt"), of=WITH_KERNEL),
    Parameter("stopping", STOP, STOPPING_HELP + ".", choices=STOPPING),
    Parameter("max_iter", STOP, "Stop after this many iterations per problem, for sgd and pegasos "
              "passes over the data, and keep the best model so far.", count,
              unset="no limit; sgd, pegasos and dcd have one of their own"),
    Parameter("time_limit", STOP, "Stop after this time, and keep the best model so far.",
              positive_number, metavar="SECONDS", unset="no limit"),
    # -- how to compute it
    Parameter("solver", HOW, "auto chooses by the size of the data. ocas is the optimised cutting "
              "plane algorithm, cpa the plain one. dcd is dual coordinate descent, for data in "
              "memory. sgd and pegasos are stochastic: quick and inexact. Every one ends with a "
              "certificate.", choices=("auto", "ocas", "cpa", "dcd", "sgd", "pegasos"),
              of=("LinearSVC",)),
    Parameter("solver", HOW, "auto chooses by the size of the data. ocas is the optimised cutting "
              "plane algorithm, cpa the plain one. dcd is dual coordinate descent, for data in "
              "memory.", choices=("auto", "ocas", "cpa", "dcd"), of=("LinearSVR",)),
    Parameter("solver", HOW, "bcfw goes through the sequences one by one, with far fewer calls of "
              "inference. ocas is the optimised cutting plane algorithm, cpa the plain one. auto "
              "begins with bcfw, for chains of first order without a kernel, and changes to ocas "
              "if that is expected to end earlier.", choices=("auto", "bcfw", "ocas", "cpa"),
              of=("ChainTagger",)),
    Parameter("solver", HOW, "ocas is the optimised cutting plane algorithm; cpa is the plain "
              "one, usually slower.", choices=("ocas", "cpa")),
    Parameter("method", HOW, "With a kernel: where cuts come from. "
              + SAMPLING_HELP.format("tokens")
              + " auto is exact up to some 11,000 tokens, then linear.",
              choices=("auto", "linear", "constant", "exact"), of=(CHAIN,)),
    Parameter("method", HOW, "blocks solves the problem on blocks of rows in turn, with a proved "
              "certificate; the others make cuts. " + SAMPLING_HELP.format("rows")
              + " auto takes blocks, and linear where samples are asked for or not needed.",
              choices=("auto", "blocks", "linear", "constant", "exact")),
    Parameter("sample_size", HOW, "Tokens in a sample; for --method constant, sequences in a "
              "sample.", count, unset="1000 tokens, 100 sequences", of=(CHAIN,)),
    Parameter("sample_size", HOW, "Rows in a sample or a block.", count),
    Parameter("passes", HOW, "With --method constant: how many samples in a row must show nothing "
              "to improve before the fit ends.", count),
    Parameter("start_rows", HOW, "With --method linear: solve the problem on so many rows first, "
              "without sampling; 0 for none.", seed_number),
    Parameter("max_basis", HOW, "Compute predictions from at most this many rows of the training "
              "data; pool takes all samples of --method linear from 20,000 rows. Fewer make "
              "predictions faster and less exact.",
              lambda text: text if text == "pool" else count(text), of=(SAMPLED,),
              unset="all that are needed"),
    Parameter("max_basis", HOW, "With a kernel: compute predictions from at most this many rows "
              "of the training data. Fewer make them faster and less exact.", count,
              unset="all that are needed"),
    Parameter("shrinking", HOW, "Leave out variables that will probably not change any more, and "
              "check them at the end. This saves time, and the answer is the same."),
    Parameter("cache_size", HOW, "Memory for kernel values.", positive_number, metavar="MB"),
    Parameter("working_set_size", HOW, "How many variables are optimised at a time, an even "
              "number; 2 is the method SMO.", count, unset="chosen by the size of the problem"),
    Parameter("random_state", HOW, "Seed of what is random: the order in which dcd, sgd and "
              "pegasos visit the rows, samples, and the rows that recall_at_fpr fits its threshold "
              "to. The same seed gives the same model.", seed_number, metavar="SEED",
              unset="fixed for --solver auto, otherwise another each time"),
    Parameter("n_jobs", HOW, "How many threads to use, -1 for all cores. The model does not "
              "depend on it, to the last bit.", threads, unset="all cores"),
)  # fmt: skip

# Parameters without a flag, and the reason. "SVC.random_state" is a parameter of one estimator.
NOT_OFFERED = {
    "verbose": "the commands have --quiet and --verbose",
    "callback": "it is Python code",
    "warm_start": "train fits once; path turns it on itself",
    "checkpoint": "train has --checkpoint and --resume",
    "executor": "train has --scheduler",
    "penalty": "it has one value; it is there for code written for scikit-learn",
    "dual": "it is not used; it is there for code written for scikit-learn",
    "probability": "it is an error that names the remedy, for code written for scikit-learn",
    "cv": "it is for calibrate; --cv is a parameter of the command",
    "SVC.random_state": "it is not used; it is there for code written for scikit-learn",
}


# -- signatures ---------------------------------------------------------------


def defaults_of(estimator: str) -> dict[str, Any]:
    """The parameters of an estimator and their defaults, from its source."""
    module = modules_of("cutplane")[estimator]
    return _declared(module.removeprefix("estimators."), estimator)


@cache
def _declared(module: str, name: str) -> dict[str, Any]:
    """The parameters of a class and of its bases: the fields with a default."""
    source = resources.files("cutplane").joinpath("estimators", f"{module}.py")
    tree = ast.parse(source.read_text(encoding="utf-8"))
    home = {part.name: module for part in tree.body if isinstance(part, ast.ClassDef)}
    for part in tree.body:
        if isinstance(part, ast.ImportFrom) and part.level == 1 and part.module:
            home |= {alias.name: part.module for alias in part.names}
    found = next((p for p in tree.body if isinstance(p, ast.ClassDef) and p.name == name), None)
    if found is None:  # chosen when the module is imported: no parameters
        return {}
    defaults: dict[str, Any] = {}
    for base in reversed(found.bases):
        if isinstance(base, ast.Name) and base.id in home:
            defaults |= _declared(home[base.id], base.id)
    for part in found.body:
        if isinstance(part, ast.AnnAssign) and part.value is not None:
            field = ast.unparse(part.target)
            if "_" not in (field[0], field[-1]):
                defaults[field] = _value(part.value)
    return defaults


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:  # a name; the tests want values
        return ast.unparse(node)


def has_parameter(kind: Kind, name: str) -> bool:
    """Whether the estimator of a kind has a parameter."""
    return name in defaults_of(kind.estimator)


def offered(estimator: str) -> Iterator[Parameter]:
    """The entries for the parameters of an estimator that are flags, in the order of the table."""
    defaults = defaults_of(estimator)
    seen: set[str] = {name for name in defaults if f"{estimator}.{name}" in NOT_OFFERED}
    for entry in PARAMETERS:  # an entry for certain estimators comes before the general one
        if entry.name in defaults.keys() - seen and (not entry.of or estimator in entry.of):
            seen.add(entry.name)
            yield entry


# -- flags --------------------------------------------------------------------


def add_model_flags(parser: Parser, arguments: Sequence[str], *, without: str = "") -> None:
    """Add the flags that choose a kind, and the parameters of the kind that the arguments choose.

    ``without`` is a parameter that the command sets itself.
    """
    parser.hint = elsewhere
    kind = chosen(arguments)
    entries = {entry.name: entry for entry in offered(kind.estimator) if entry.name != without}
    kinds = parser.add_argument_group(
        "kinds of models",
        "Without any of these flags, the model predicts two or more classes by linear scores\n"
        f"(LinearSVC). Every kind has parameters of its own: see {parser.prog} --ranking --help\n"
        "and so on.",
    )
    exclusive = kinds.add_mutually_exclusive_group()
    names = {entry.name for entry in PARAMETERS}
    for other in KINDS:
        if len(other.flags) != 1:  # flags of other kinds together, or none
            continue
        (flag,) = other.flags
        name = flag.removeprefix("--")
        if name not in names:
            exclusive.add_argument(flag, dest="kind_flag", action="store_true", help=other.help)
        elif kind in (DEFAULT, other):
            entry = entries.pop(name, None) or parameter_of(other.estimator, name)
            _add_flag(kinds, entry, None, f"{other.help} {entry.help}")
    groups: dict[str, Any] = {}
    for entry in entries.values():
        title = entry.group.format(kind.estimator)
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        _add_flag(groups[title], entry, defaults_of(kind.estimator)[entry.name], entry.help)
    parser.set_defaults(kind=kind)


def parameter_of(estimator: str, name: str) -> Parameter:
    """The entry for a parameter of an estimator."""
    return next(entry for entry in offered(estimator) if entry.name == name)


def _add_flag(group: Any, entry: Parameter, default: Any, text: str) -> None:
    """Add a flag. What is not given stays out of the namespace."""
    note = entry.unset if default is None else _text(default)
    options: dict[str, Any] = {
        "dest": f"parameter_{entry.name}",
        "default": argparse.SUPPRESS,
        "help": (text + (f" (default: {note})" if note else "")).replace("%", "%%"),
    }
    if isinstance(default, bool):
        options["action"] = argparse.BooleanOptionalAction
    elif entry.choices:
        options.update(type=entry.type, choices=entry.choices)
    else:
        options.update(
            type=or_none(entry.type) if entry.unset else entry.type, metavar=entry.metavar
        )
    group.add_argument(*entry.flags, **options)


def _text(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return f"{default:g}" if isinstance(default, float) else str(default)


def elsewhere(flag: str) -> str:
    """The end of a message: to which other kinds a flag belongs."""
    owners = [
        " ".join(kind.flags) or f"the default, {kind.estimator}"
        for kind in KINDS
        if any(flag in entry.flags for entry in offered(kind.estimator))
    ]
    return f"; it belongs to {', '.join(owners)}" if owners else ""


def parameters_given(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the estimator that were given, and those that follow from them."""
    prefix = "parameter_"
    given = {
        name.removeprefix(prefix): value
        for name, value in vars(args).items()
        if name.startswith(prefix)
    }
    if "quantile" in given and given.setdefault("loss", "quantile") != "quantile":
        raise UsageError(f"--quantile goes with --loss quantile, not with {given['loss']}")
    if "epsilon" in given and given.get("loss") == "quantile":
        raise UsageError("--epsilon has no meaning for --loss quantile; leave it out")
    return given
