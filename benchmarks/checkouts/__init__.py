"""The checkouts benchmark: whether any kind of fit is slower than in another checkout."""

from ..runner import Suite
from . import fits

SUITE = Suite("checkouts", __doc__, {"fits": fits.run}, (), resumable=("fits",))
