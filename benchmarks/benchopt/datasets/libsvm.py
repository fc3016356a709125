"""Sets of the LIBSVM page by name, which are downloaded by the package libsvmdata."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseDataset
from libsvmdata import fetch_libsvm


class Dataset(BaseDataset):
    """Two classes. Features are as the file has them."""

    name = "libsvm"
    parameters = {"which": ["a9a", "ijcnn1", "rcv1.binary", "news20.binary"]}
    requirements = ["pip::libsvmdata"]

    def get_data(self) -> dict[str, Any]:
        """X and y."""
        X, y = fetch_libsvm(self.which)
        return {"X": X, "y": np.where(y > np.mean(np.unique(y)), 1.0, -1.0)}
