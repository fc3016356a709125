"""Your own svmlight file with two classes: ``-d "svmlight[path=/where/it/is.svm]"``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_svmlight_file


class Dataset(BaseDataset):
    """Rows of a file; the larger of its two labels is +1."""

    name = "svmlight"
    parameters = {"path": [None]}

    def skip(self) -> tuple[bool, str | None]:
        """Whether to skip the set: there is no file."""
        if self.path is None or not Path(self.path).is_file():
            return True, f"there is no file {self.path}; give one as svmlight[path=...]"
        return False, None

    def get_data(self) -> dict[str, Any]:
        """X and y."""
        X, y = load_svmlight_file(str(self.path))
        labels = np.unique(y)
        if len(labels) != 2:
            raise ValueError(f"{self.path}: there must be 2 labels, found {len(labels)}")
        return {"X": X, "y": np.where(y == labels[1], 1.0, -1.0)}
