"""
What a text model looks at
==========================

You can read a linear model of words: every word has a weight. We train a model that tells
paragraphs of numpy's documentation from those of scipy's. The text comes with the two libraries,
so there is no download, and the numbers change a little with their versions.
"""

# %%
# Every paragraph of a docstring is a text. We leave out examples, repeated paragraphs, and
# paragraphs of fewer than eight words.

import inspect
import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GroupShuffleSplit

from cutplane import LinearSVCCV


def docstrings(*modules):
    """The docstrings of all public functions and classes of some modules."""
    for module in modules:
        for name in sorted(dir(module)):
            thing = getattr(module, name)
            if not name.startswith("_") and (inspect.isclass(thing) or callable(thing)):
                yield inspect.getdoc(thing) or ""


def paragraphs(texts):
    """Paragraphs with the number of the docstring that they come from."""
    seen = set()
    for k, text in enumerate(texts):
        for part in re.split(r"\n\s*\n", text):
            if len(part.split()) >= 8 and ">>>" not in part and part not in seen:
                seen.add(part)
                yield k, part


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # some names are deprecated
    sources = {
        "numpy": docstrings(np, np.linalg, np.fft, np.random, np.ma),
        "scipy": docstrings(
            scipy.linalg, scipy.fft, scipy.stats, scipy.optimize, scipy.signal, scipy.sparse
        ),
    }
    found = {name: list(paragraphs(texts)) for name, texts in sources.items()}
texts = [text for parts in found.values() for _, text in parts]
library = np.repeat(list(found), [len(parts) for parts in found.values()])
groups = [f"{name}{k}" for name, parts in found.items() for k, _ in parts]
print({name: len(parts) for name, parts in found.items()}, "paragraphs")

# %%
# Paragraphs of one docstring must not be split between training and test, or the model could
# recognise the docstring. The names of the libraries are left out: they would be too easy.

vectorizer = TfidfVectorizer(
    sublinear_tf=True, min_df=3, token_pattern=r"\b[a-z]{3,}\b", stop_words=["numpy", "scipy"]
)
train, test = next(GroupShuffleSplit(1, test_size=0.3, random_state=0).split(texts, groups=groups))
X_train = vectorizer.fit_transform([texts[k] for k in train])
X_test = vectorizer.transform([texts[k] for k in test])
model = LinearSVCCV([0.1, 0.3, 1.0, 3.0], class_weight="balanced").fit(X_train, library[train])
score = 100 * model.score(X_test, library[test])
common = 100 * max(np.mean(library[test] == name) for name in found)
print(f"{X_train.shape[1]} words, C = {model.C_:g}, {model.certificate_}")
print(f"{score:.1f} % of new paragraphs are right (the larger class has {common:.1f} %)")

# %%
# All rows have length 1, so we can compare the weights of words. Positive weights are evidence for
# scipy, and negative weights for numpy. Most of the words are about the subject. Some, such as
# those of section headings, show the style of the documentation.

words, weights = vectorizer.get_feature_names_out(), model.coef_[0]
order = np.argsort(weights)
shown = np.concatenate([order[:15], order[-15:]])
print("numpy:", ", ".join(words[order[:15]]))
print("scipy:", ", ".join(words[order[:-16:-1]]))

fig, ax = plt.subplots(figsize=(6.4, 6.4), layout="constrained")
ax.barh(words[shown], weights[shown], color=np.where(weights[shown] > 0, "C0", "C1"))
ax.axvline(0.0, color="black", lw=0.8)
ax.margins(y=0.01)
ax.set(
    xlabel="weight (left: speaks for numpy, right: for scipy)",
    title=f"Thirty of {len(words):,} words; {score:.0f} % of new paragraphs are right",
)
plt.show()
