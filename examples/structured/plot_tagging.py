"""
Tagging words of sentences
==========================

To find names in a text, tag its words: ``B-PER`` begins a person's name, ``I-PER`` continues it,
``O`` is outside. ``ChainTagger`` scores all tags of a sentence together, so a tag can depend on
the tag before. A classifier of single words cannot do that.
"""

# %%
# The sentences are made up: people meet in places and work for firms. Names consist of syllables,
# so most names of the test sentences never occur in training. Two writers in five use no capitals,
# and three words in ten outside of names are typing errors.

from itertools import chain

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.pipeline import make_pipeline

from cutplane import ChainTagger, LinearSVC
from cutplane.metrics import chunk_f1

rng = np.random.default_rng(0)
SYLLABLES = ["an", "ber", "cor", "dal", "el", "fin", "gor", "han", "il", "kar", "lo", "mir", "nor"]
PATTERNS = [
    "PER met PER in LOC",
    "yesterday PER of ORG went to LOC",
    "ORG opened an office in LOC",
    "the boss of ORG is PER",
    "in LOC PER works for ORG",
    "many people in LOC know PER and PER",
    "ORG and ORG left LOC",
]


def name(kind):
    """A name of one to three words; firms and places share their words with people."""
    words = ["".join(rng.choice(SYLLABLES, rng.integers(2, 4))).title() for _ in range(2)]
    if kind == "ORG":
        return words[: rng.integers(1, 3)] + ["Group"] * (rng.random() < 0.4)
    if kind == "LOC":
        return ["Port"] * (rng.random() < 0.3) + words[:1]
    return words[: rng.integers(1, 3)]


def typing_error():
    """Some letters in place of a word."""
    return "".join(rng.choice(SYLLABLES, 2))


def sentence():
    """Words and their tags."""
    words, tags = [], []
    for item in str(rng.choice(PATTERNS)).split():
        found = name(item) if item.isupper() else [item if rng.random() < 0.7 else typing_error()]
        words += found
        inside = [f"I-{item}"] * (len(found) - 1)
        tags += [f"B-{item}", *inside] if item.isupper() else ["O"]
    words[0] = words[0].title()
    if rng.random() < 0.4:  # a careless writer
        words = [word.lower() for word in words]
    return words, tags


train, test = [sentence() for _ in range(400)], [sentence() for _ in range(400)]
print(*(f"{word}/{tag}" for word, tag in zip(*train[0], strict=True)))

# %%
# The features of a word are a dictionary, as in CRF toolkits, and a sentence is a list of such
# dictionaries. ``ChainTagger`` takes these lists and keeps the names of the features. The
# classifier of single words needs a matrix, which ``DictVectorizer`` makes.


def features(words, k):
    """What can be seen of a word and its neighbours."""
    word = words[k]
    return {
        "word": word.lower(),
        "capital": word[0].isupper(),
        "before": words[k - 1].lower() if k else "<begin>",
        "after": words[k + 1].lower() if k + 1 < len(words) else "<end>",
        "constant": 1.0,
    }


def dictionaries(sentences):
    """A list of dictionaries for every sentence."""
    return [[features(words, k) for k in range(len(words))] for words, _ in sentences]


X_train, X_test = dictionaries(train), dictionaries(test)
y_train, y_test = ([tags for _, tags in part] for part in (train, test))
tagger = ChainTagger(C=0.3).fit(X_train, y_train)
words = make_pipeline(DictVectorizer(), LinearSVC(C=0.3, fit_intercept=False))
words.fit(list(chain(*X_train)), list(chain(*y_train)))
predicted = {
    "single words": [words.predict(sentence) for sentence in X_test],
    "chain": tagger.predict(X_test),
}
print(f"{tagger.n_features_in_} features; {tagger.certificate_}")

# %%
# A predicted name is right if it has exactly the words of the true name. ``chunk_f1`` is the F1 of
# names.

f1 = {}
for method, tags in predicted.items():
    f1[method] = 100 * chunk_f1(y_test, tags)
    accuracy = 100 * np.mean(np.concatenate(tags) == np.concatenate(y_test))
    print(f"{method:12s} F1 of names {f1[method]:.1f} %, right words {accuracy:.1f} %")

# %%
# The chain has learnt which tag follows which: an ``I-`` comes after a ``B-`` or ``I-`` of the same
# kind.

order = sorted(range(len(tagger.classes_)), key=lambda k: (tagger.classes_[k][2:], k))
tags = tagger.classes_[order]
weights = tagger.transitions_[np.ix_(order, order)]
largest = np.abs(weights).max()
fig, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
image = ax.imshow(weights, cmap="RdBu", vmin=-largest, vmax=largest)
for i, j in np.ndindex(weights.shape):
    dark = abs(weights[i, j]) > 0.6 * largest
    ax.text(
        j,
        i,
        f"{weights[i, j].round(1) + 0.0:.1f}",
        ha="center",
        va="center",
        color="white" if dark else "black",
    )
ax.set_xticks(range(len(tags)), tags)
ax.set_yticks(range(len(tags)), tags)
ax.set(xlabel="next tag", ylabel="tag")
fig.colorbar(image, label="weight of the transition")
ax.set_title(f"F1 of names: chain {f1['chain']:.1f} %, single words {f1['single words']:.1f} %")
plt.show()
