"""A path of C: each fit starts from the cuts of the last one.

A cut is a lower bound on the loss, whatever C, so all that was learnt at one C serves the next.
The certificate of every fit is as good as without the warm start.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cutplane import LinearSVC

digits = load_digits()
X = digits.data / 16
y = digits.target % 2 == 1  # is the digit odd?
train, test, y_train, y_test = train_test_split(X, y, random_state=0)

path = LinearSVC(warm_start=True)
warm = cold = 0
print("       C  iterations  from scratch    objective  gap (%)  held out")
for C in np.logspace(-3, 2, 11):
    path.set_params(C=C).fit(train, y_train)
    scratch = LinearSVC(C=C).fit(train, y_train)
    warm += path.n_iter_
    cold += scratch.n_iter_
    certificate = path.certificate_
    print(
        f"{C:8.3g}  {path.n_iter_:10d}  {scratch.n_iter_:12d}  {certificate.primal:11.5g}"
        f"  {100 * certificate.relative_gap:7.2g}  {100 * path.score(test, y_test):6.1f} %"
    )
print(f"     all  {warm:10d}  {cold:12d}")
