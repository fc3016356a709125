"""Data sets on disk: folders of arrays with a manifest, usually named ``….cut``."""

from .read import Dataset, open_dataset
from .write import write_dataset

__all__ = ["Dataset", "open_dataset", "write_dataset"]
