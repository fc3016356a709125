"""Sets that come with scikit-learn, so that nothing is downloaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseDataset
from sklearn import datasets
from sklearn.preprocessing import StandardScaler


class Dataset(BaseDataset):
    """Standardised features. For the digits, one class against the rest."""

    name = "scikit-learn"
    parameters = {"which": ["breast_cancer", "digits"]}

    def get_data(self) -> dict[str, Any]:
        """X and y."""
        X, y = getattr(datasets, f"load_{self.which}")(return_X_y=True)
        positive = 8 if self.which == "digits" else 1
        return {"X": StandardScaler().fit_transform(X), "y": np.where(y == positive, 1.0, -1.0)}
