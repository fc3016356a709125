"""A path of C, and C by cross-validation: each fit starts from what the last one learnt.

A cut is a lower bound on the loss, whatever C, so all that was learnt at one C serves the next.
The certificate of every fit is as good as without the warm start. If matplotlib is installed
and a file name is given, score and gap along the path are drawn there.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cutplane import LinearSVC, LinearSVCCV, linear_svc_path, plot_path

digits = load_digits()
X = digits.data / 16
y = digits.target % 2 == 1  # is the digit odd?
train, test, y_train, y_test = train_test_split(X, y, random_state=0)
Cs = np.logspace(-3, 2, 11)

path = linear_svc_path(train, y_train, Cs)
cold = 0
print("       C  iterations  from scratch    objective  gap (%)  held out")
for k, C in enumerate(Cs):
    scratch = LinearSVC(C=C).fit(train, y_train)
    cold += scratch.n_iter_
    model = path.model(k)
    print(
        f"{C:8.3g}  {path.n_iters[k]:10d}  {scratch.n_iter_:12d}"
        f"  {model.certificate_.primal:11.5g}  {100 * path.relative_gaps[k]:7.2g}"
        f"  {100 * model.score(test, y_test):6.1f} %"
    )
print(f"     all  {path.n_iters.sum():10d}  {cold:12d}")

search = LinearSVCCV(Cs).fit(train, y_train)
print(
    f"five folds choose C = {search.C_:.3g}: {100 * search.best_score_:.1f} % in them, "
    f"{100 * search.score(test, y_test):.1f} % held out"
)
if len(sys.argv) > 1:
    plot_path(search).figure.savefig(sys.argv[1])
