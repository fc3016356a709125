"""Sequences from rows with numbers, from lists, and what is refused."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.sparse

from cutplane.structured import sequences_from
from cutplane.structured.sequences import stack_labels, stack_rows, starts_of


def test_rows_of_a_number_are_a_sequence_in_the_order_of_lines():
    X = np.arange(10.0).reshape(5, 2)
    found = sequences_from(X, [1, 2, 1, 3, 1], [9, 9, 2, 4, 4])
    assert found.lengths.tolist() == [2, 1, 2]
    assert found.X is X
    rows, labels = found.split()
    assert [part.tolist() for part in labels] == [[1, 2], [1], [3, 1]]
    np.testing.assert_array_equal(rows[2], X[3:])


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_scattered_rows_are_brought_together(layout, caplog):
    X = np.arange(10.0).reshape(5, 2)
    with caplog.at_level(logging.INFO, "cutplane"):
        found = sequences_from(layout(X), list("abcde"), [4, 1, 4, 1, 4])
    assert found.lengths.tolist() == [3, 2]
    assert found.y.tolist() == list("acebd")
    stacked = found.X.toarray() if scipy.sparse.issparse(found.X) else found.X
    np.testing.assert_array_equal(stacked, X[[0, 2, 4, 1, 3]])
    assert "brought together" in caplog.text


@pytest.mark.parametrize(("y", "qid"), [([1], [1, 1]), ([1, 2], [1]), ([1, 2], [[1], [2]])])
def test_columns_of_another_length_are_refused(y, qid):
    with pytest.raises(ValueError, match="one value per row of X, 2"):
        sequences_from(np.zeros((2, 1)), y, qid)


def test_stacking_keeps_order_and_empty_sequences():
    parts = [np.ones((2, 3)), [], np.zeros((0, 3)), np.full((1, 3), 2.0)]
    stacked, starts = stack_rows(parts)
    assert starts.tolist() == [0, 2, 2, 2, 3]
    np.testing.assert_array_equal(stacked[:, 0], [1.0, 1.0, 2.0])
    sparse, starts = stack_rows([scipy.sparse.csr_array(np.ones((2, 3))), np.ones((1, 3))])
    assert scipy.sparse.issparse(sparse)
    assert sparse.shape == (3, 3)
    labels = stack_labels([["a", "bb"], [], [], ["c"]], np.array([0, 2, 2, 2, 3]))
    assert labels.tolist() == ["a", "bb", "c"]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 2)), "pass lengths"),
        (scipy.sparse.csr_array(np.zeros((3, 2))), "pass lengths"),
        ([np.zeros((1, 2)), np.zeros((1, 3))], "sequence 1 of X has 3 features, expected 2"),
        ([np.zeros(2)], "sequence 0 of X must be a matrix"),
        (3.0, "must be a list of sequences"),
        ("abc", "must be a list of sequences"),
    ],
)
def test_what_is_no_list_of_sequences(X, message):
    with pytest.raises(ValueError, match=message):
        stack_rows(X)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1, 2]], "must have 2 sequences"),
        ([[1, 2], [3, 4]], "sequence 1 has 1 tokens"),
        ([["a", "b"], [1]], "mixes names and numbers"),
        ([[1.0, np.nan], [1.0]], "not a finite number"),
        (np.array([1, 2]), "2 labels, but X has 3 tokens"),
        (7, "must have 2 sequences"),
    ],
)
def test_labels_that_do_not_fit(y, message):
    with pytest.raises(ValueError, match=message):
        stack_labels(y, np.array([0, 2, 3]))


@pytest.mark.parametrize(
    ("lengths", "message"),
    [([2, 2], "sum to 4, but X has 3 rows"), ([4, -1], "≥ 0"), ([1.5, 1.5], "integers")],
)
def test_lengths_that_do_not_fit(lengths, message):
    with pytest.raises(ValueError, match=message):
        starts_of(lengths, 3)
