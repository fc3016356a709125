"""Ten digits: one problem per class, or one joint problem, and how they converge.

Writes multiclass.png.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cutplane import LinearSVC, plot_convergence

digits = load_digits()
train, test, y_train, y_test = train_test_split(digits.data / 16, digits.target, random_state=0)

ovr = LinearSVC(C=0.1).fit(train, y_train)
print("one-vs-rest: a certificate per class")
for label, certificate in zip(ovr.classes_, ovr.certificates_, strict=True):
    print(f"  {label}: {certificate}")
print(f"  held-out accuracy {100 * ovr.score(test, y_test):.1f} %")

joint = LinearSVC(C=0.1, multi_class="crammer_singer").fit(train, y_train)
print("Crammer-Singer: one certificate")
print(f"  {joint.certificate_}")
print(f"  held-out accuracy {100 * joint.score(test, y_test):.1f} %")

ax = plot_convergence({"one-vs-rest": ovr, "joint": joint})
ax.figure.savefig("multiclass.png", dpi=150)
plt.close(ax.figure)
print("plot in multiclass.png")
