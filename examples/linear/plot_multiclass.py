"""
Ten classes: one problem each, or one joint problem
===================================================

With more than two classes ``LinearSVC`` solves one problem per class against the rest, or one
joint problem of all classes (Crammer and Singer). Either has certificates: one per class, or one in
all.
"""

# %%
# The data are the handwritten digits of scikit-learn.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cutplane import LinearSVC

digits = load_digits()
X_train, X_test, y_train, y_test = train_test_split(digits.data / 16, digits.target, random_state=0)

rest = LinearSVC(C=0.1).fit(X_train, y_train)
print("one class against the rest: a certificate for each class")
for label, certificate in zip(rest.classes_, rest.certificates_, strict=True):
    print(f"  {label}: {certificate}")

# %%
# The joint problem has one certificate.

joint = LinearSVC(C=0.1, multi_class="crammer_singer").fit(X_train, y_train)
print(f"Crammer and Singer: {joint.certificate_}")
scores = {
    "one against the rest": 100 * rest.score(X_test, y_test),
    "joint": 100 * joint.score(X_test, y_test),
}
for name, score in scores.items():
    print(f"{name}: {score:.1f} % of the held-out digits are right")

# %%
# The weights of a class make a picture of 8 × 8 pixels. Blue pixels are evidence for the digit, and
# red pixels are evidence against it.

fig, axes = plt.subplots(4, 5, figsize=(6.4, 6), layout="constrained")
for half, (name, model) in enumerate({"one against the rest": rest, "joint": joint}.items()):
    largest = abs(model.coef_).max()
    for k, ax in enumerate(axes[2 * half : 2 * half + 2].flat):
        ax.imshow(model.coef_[k].reshape(8, 8), cmap="RdBu", vmin=-largest, vmax=largest)
        ax.set_axis_off()
        ax.set_title(f"{k}", fontsize="small")
    axes[2 * half, 2].set_title(f"{name}: {scores[name]:.1f} % right\n2", fontsize="small")
better, worse = sorted(scores, key=scores.get, reverse=True)
fig.suptitle(
    f"Weights of ten digits ({better}: {scores[better] - scores[worse]:.1f} points better)"
)
plt.show()
