"""Tokens with named features: the same models as from matrices that are made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer

import cutplane
from cutplane import ChainTagger
from cutplane.structured import read_conll

WORDS = ["the", "cat", "sat", "dog", "ran", "a"]
TAGS = {"the": "D", "a": "D", "cat": "N", "dog": "N", "sat": "V", "ran": "V"}


def sentences(count, seed=0):
    rng = np.random.default_rng(seed)
    texts = [rng.choice(WORDS, size=rng.integers(0, 6)).tolist() for _ in range(count)]
    return texts, [[TAGS[word] for word in text] for text in texts]


def tokens(text):
    return [
        {"word": w, "last": w[-1], "size": len(w) / 4, "first": t == 0, "has": list(set(w))}
        for t, w in enumerate(text)
    ]


@pytest.fixture(scope="module")
def data():
    texts, y = sentences(40)
    return [tokens(text) for text in texts], y


def test_dictionaries_give_the_model_of_a_vectorizer(data):
    X, y = data
    plain = [
        {
            **{f"word:{d['word']}": 1, f"last:{d['last']}": 1, "size": d["size"]},
            **{"first": float(d["first"])},
            **{f"has:{letter}": 1 for letter in d["has"]},
        }
        for s in X
        for d in s
    ]
    vectors = DictVectorizer().fit(plain)
    lengths = [len(s) for s in X]
    flat = np.concatenate([np.array(tags, dtype="U1") for tags in y])
    by_hand = ChainTagger(tol=1e-6).fit(vectors.transform(plain), flat, lengths=lengths)
    tagger = ChainTagger(tol=1e-6).fit(X, y)
    assert tagger.feature_names_in_.tolist() == vectors.get_feature_names_out().tolist()
    assert np.array_equal(tagger.coef_, by_hand.coef_)
    assert tagger.score(X, y) == by_hand.score(vectors.transform(plain), flat, lengths=lengths)
    again = ChainTagger(tol=1e-6).fit([d for s in X for d in s], flat, lengths=lengths)
    assert np.array_equal(again.coef_, tagger.coef_)
    assert again.predict([d for s in X for d in s], lengths=lengths).tolist() == flat.tolist()


def test_lists_of_names_are_features_of_value_1(data):
    texts, y = sentences(40)
    X = [[[f"w={w}", f"end={w[-1]}"] for w in text] for text in texts]
    as_dicts = [[dict.fromkeys(names, 1.0) for names in s] for s in X]
    one, other = ChainTagger().fit(X, y), ChainTagger().fit(as_dicts, y)
    assert np.array_equal(one.coef_, other.coef_)
    as_arrays = [np.array(s, dtype=object) if s else [] for s in X]
    assert np.array_equal(ChainTagger().fit(as_arrays, y).coef_, one.coef_)
    twice = ChainTagger().fit([[["a", "a"], ["b"]]], [["x", "y"]])
    by_hand = ChainTagger().fit([[[2.0, 0.0], [0.0, 1.0]]], [["x", "y"]])
    assert np.array_equal(twice.coef_, by_hand.coef_)


def test_features_that_training_has_not_seen_are_left_out(data):
    X, y = data
    tagger = ChainTagger().fit(X, y)
    odd = [[{**token, "owl": 5.0, "word2": "new"} for token in s] for s in X]
    for ours, theirs in zip(tagger.predict(X), tagger.predict(odd), strict=True):
        assert ours.tolist() == theirs.tolist()
    assert len(tagger.predict([[{}, {"owl": 1}], []])[0]) == 2


def test_rare_names_are_no_features():
    X = [[{"a": 1.0}, {"a": 1.0, "b": 1.0}], [{"c": 1.0}, {"c": 1.0}]]
    tagger = ChainTagger(min_count=2).fit(X, [["x", "y"], ["x", "x"]])
    assert tagger.feature_names_in_.tolist() == ["a", "c"]
    with pytest.raises(ValueError, match="no feature that occurs min_count=5 times"):
        ChainTagger(min_count=5).fit(X, [["x", "y"], ["x", "x"]])


def test_models_keep_the_names(data, tmp_path):
    X, y = data
    tagger = ChainTagger().fit(X, y)
    cutplane.save_model(tagger, tmp_path / "model")
    loaded = cutplane.load_model(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == tagger.feature_names_in_.tolist()
    assert [z.tolist() for z in loaded.predict(X)] == [z.tolist() for z in tagger.predict(X)]
    tagger.fit([np.eye(3)], [["x", "y", "x"]])  # names of another model
    assert not hasattr(tagger, "feature_names_in_")


def test_a_kernel_and_second_order_take_names_too(data):
    X, y = data
    assert ChainTagger(order=2, C=10).fit(X, y).score(X, y) == 1.0
    assert ChainTagger(kernel="rbf", C=10).fit(X, y).score(X, y) == 1.0


def test_a_warm_start_needs_the_same_names(data):
    X, y = data
    tagger = ChainTagger(warm_start=True, tol=1e-4).fit(X, y)
    steps = tagger.n_iter_
    assert tagger.fit(X, y).n_iter_ <= steps
    renamed = [[{f"other {name}": value for name, value in t.items()} for t in s] for s in X]
    fresh = ChainTagger(tol=1e-4).fit(renamed, y)
    tagger.fit(renamed, y)
    assert tagger.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=2e-4)
    assert tagger.feature_names_in_.tolist() == fresh.feature_names_in_.tolist()


# -- templates ------------------------------------------------------------------------

TEMPLATE = """
# words
U00:%x[0,0]
U01:%x[-1,0]/%x[0,1]
U02:%x[-2,0]|%x[1,0]
U9{}
B
"""


def test_a_template_makes_the_names_of_crf_pp():
    X = [[["He", "PRP"], ["ran", "VBD"]], [["No", "UH"]]]
    tagger = ChainTagger(template=TEMPLATE).fit(X, [["x", "y"], ["x"]])
    assert tagger.feature_names_in_.tolist() == sorted(
        {
            *("U00:He", "U01:_B-1/PRP", "U02:_B-2|ran", "U9{}"),
            *("U00:ran", "U01:He/VBD", "U02:_B-1|_B+1"),
            *("U00:No", "U01:_B-1/UH", "U02:_B-2|_B+1"),
        }
    )
    by_hand = [
        [["U00:He", "U01:_B-1/PRP", "U02:_B-2|ran", "U9{}"],
         ["U00:ran", "U01:He/VBD", "U02:_B-1|_B+1", "U9{}"]],
        [["U00:No", "U01:_B-1/UH", "U02:_B-2|_B+1", "U9{}"]],
    ]  # fmt: skip
    same = ChainTagger().fit(by_hand, [["x", "y"], ["x"]])
    assert np.array_equal(tagger.coef_, same.coef_)
    tuples = [[tuple(token) for token in s] for s in X]
    assert [z.tolist() for z in tagger.predict(tuples)] == [["x", "y"], ["x"]]


def test_files_in_columns(tmp_path):
    file = tmp_path / "train.txt"
    file.write_text("\n\nHe PRP\tB-NP\nran VBD B-VP\n\n \nWhy WRB  B-ADVP")
    X, y = read_conll(file)
    assert X == [[["He", "PRP"], ["ran", "VBD"]], [["Why", "WRB"]]]
    assert y == [["B-NP", "B-VP"], ["B-ADVP"]]
    assert ChainTagger(C=10, template="U0:%x[0,0]").fit(X, y).score(X, y) == 1.0


# -- what goes wrong ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[{"a": 1.0}, {"b": None}]], "token 1 of sequence 0 of X: the feature 'b' is None"),
        ([[{"a": 1.0}, {"b": np.nan}]], "token 1 of sequence 0 of X: the feature 'b' is nan"),
        ([["the", "cat"]], "token 0 of sequence 0 of X is 'the': a token is a dictionary"),
        ([{"a": 1.0}, {"b": 1.0}], "sequence 0 of X must be a list of tokens, got dict"),
        ([[{"a": 1.0}, 7]], "token 1 of sequence 0 of X is 7"),
        ([[["a"], [3]]], "X has a feature 3: names of features must be text"),
        ([[{"a": 1.0}, {2: 1.0}]], "X has a feature 2: names of features must be text"),
        ([[{}, {}]], "X has no features: every token is empty"),
        ([[{"a": 1.0}], None], "sequence 1 of X must be a list of tokens, got NoneType"),
    ],
)
def test_errors_name_sequence_and_token(X, message):
    with pytest.raises(ValueError, match=message):
        ChainTagger().fit(X, [["x", "y"]])


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("U00:%x[0]", r"template:1:5: expected %x\[ROW,COLUMN\]"),
        ("U0:%x[0,0]\nU1:%x[0,0]%x[0,-1]", r"template:2:11: expected"),
        ("\nword", "template:2:1: expected U00"),
        ("B01:%x[0,0]", "template:1:1: .* write B alone"),
        ("B\n# U", "template has no line that makes a feature"),
        (3, "template must be text or None, got 3"),
        ("U0:%x[0,2]", "token 0 of sequence 0 of X has 2 columns, but the template needs 3"),
    ],
)
def test_errors_in_templates_name_line_and_column(template, message):
    with pytest.raises(ValueError, match=message):
        ChainTagger(template=template).fit([[["He", "PRP"], ["ran", "VBD"]]], [["x", "y"]])


def test_names_and_matrices_do_not_mix(data):
    X, y = data
    with pytest.raises(ValueError, match="fitted with matrices of 3 features"):
        ChainTagger().fit([np.eye(3)], [["x", "y", "x"]]).predict(X)
    tagger = ChainTagger().fit(X, y)
    with pytest.raises(ValueError, match="has 3 features, expected 2"):
        tagger.predict([np.eye(3)])
    rows = np.zeros((2, tagger.n_features_in_))
    assert len(tagger.predict([rows])[0]) == 2  # a matrix of all features is one


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a b C\nd e\n", r"train.txt:2:4: 2 columns, but the tokens before have 3"),
        (b"\n\n", r"train.txt has no token"),
        (b"a\nb\n", r"train.txt:1:2: 1 columns, but a token needs one at least, and a tag"),
        (b"a b\n\xff c\n", r"train.txt:2:1: this is not UTF-8 text"),
    ],
)
def test_errors_in_files_name_line_and_column(tmp_path, text, message):
    file = tmp_path / "train.txt"
    file.write_bytes(text)
    with pytest.raises(ValueError, match=message):
        read_conll(file)
