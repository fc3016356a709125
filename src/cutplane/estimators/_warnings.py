"""The warning that a fit gives when it ends above its tolerance: it states the gap."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..result import Certificate, SolveResult, Status
from ._callbacks import WARN_LEVEL

ADVICE = {
    Status.MAX_ITER: " Raise max_iter, or tol if this is close enough.",
    Status.TIME_LIMIT: " Raise time_limit, or tol if this is close enough.",
    Status.NUMERICALLY_LIMITED: " Bring the features to similar scales, or lower C.",
}


def warn_unless_converged(name: str, results: list[SolveResult], level: int = WARN_LEVEL) -> None:
    """Warn of the worst result above the tolerance, unless the user's callback ended it.

    To be called by ``fit`` itself, so that the warning shows the caller's line; ``level`` is
    that of the caller, from here, where ``fit`` is not wrapped.
    """
    worst = max(
        (r for r in results if r.status not in (Status.CONVERGED, Status.STOPPED)),
        key=lambda r: r.certificate.relative_gap,
        default=None,
    )
    if worst is None:
        return
    warnings.warn(
        f"{name} {worst.status.reason} after {worst.n_iter} iterations, above tol: "
        f"{_distance(worst.certificate)}.{ADVICE.get(worst.status, '')}",
        ConvergenceWarning,
        stacklevel=level,
    )


def _distance(certificate: Certificate) -> str:
    if not certificate.gap < np.inf:
        return "how far the model is from the optimum is not known"
    known = "is estimated to be" if certificate.kind == "estimated" else "is at most"
    condition = ", if the kernel is positive semidefinite"
    return (
        f"the objective {certificate.primal:.6g} {known} {certificate.gap:.3g} above the "
        f"optimum (relative gap {certificate.relative_gap:.2g})"
        f"{condition if certificate.kind == 'conditional' else ''}"
    )
