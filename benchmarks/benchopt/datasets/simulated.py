"""Generated rows: dense and correlated, or sparse like text."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Labels of a random hyperplane; a tenth of them is flipped."""

    name = "Simulated"
    parameters = {"rows, features, density": [(4_000, 50, 1.0), (4_000, 20_000, 0.003)]}

    def get_data(self) -> dict[str, Any]:
        """X and y."""
        rng = np.random.default_rng(self.get_seed())
        X: Any
        if self.density < 1.0:
            X = scipy.sparse.random(self.rows, self.features, self.density, "csr", random_state=rng)
        else:
            common = rng.normal(size=(self.rows, 1))
            X = 0.5 * common + rng.normal(size=(self.rows, self.features))
        y = np.sign(X @ rng.normal(size=self.features) + 1e-9)
        y[rng.random(self.rows) < 0.1] *= -1.0
        return {"X": X, "y": y}
