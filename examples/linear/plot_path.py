"""
A path over C, with the gap of every fit
========================================

``LinearSVCCV`` chooses C by cross-validation. Each fold is a path over C: each fit starts from the
solution of the one before. Every fit has a certificate, so you can see whether two scores differ
because of C or because a solver stopped early.
"""

# %%
# The task is to tell whether a handwritten digit is odd.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cutplane import LinearSVCCV, plot_path

digits = load_digits()
X_train, X_test, y_train, y_test = train_test_split(
    digits.data / 16, digits.target % 2 == 1, random_state=0
)
Cs = np.logspace(-3, 2, 11)
search = LinearSVCCV(Cs, cv=5).fit(X_train, y_train)

# %%
# ``fold_certificates_`` has the certificate of every fit: by fold, by C and by problem. There is
# one problem here, because there are two classes.

print("       C   mean score   largest relative gap of the five folds")
for k, C in enumerate(search.Cs_):
    worst = max(fold[k][0].relative_gap for fold in search.fold_certificates_)
    print(f"{C:8.3g}   {100 * search.scores_[:, k].mean():8.2f} %   {worst:.1e}")
print(f"chosen: C = {search.C_:.3g}, {100 * search.best_score_:.1f} % in the held-out folds")
print(f"on rows that no fold has seen: {100 * search.score(X_test, y_test):.1f} %")
print(f"the last fit, to all training rows: {search.certificate_}")

# %%
# ``plot_path`` draws the scores and, below, the gaps. All gaps are below the tolerance of 1e-3, so
# the shape of the curve above is due to C.

largest = max(c[0].relative_gap for fold in search.fold_certificates_ for c in fold)
ax = plot_path(search)
ax.set_title(f"C = {search.C_:.2g} is best, and every gap is at most {100 * largest:.2f} %")
plt.show()
