"""This checkout of the project against another one: is any kind of fit slower than it was?"""

from ..runner import Suite
from . import fits

SUITE = Suite("checkouts", __doc__, {"fits": fits.run}, (), resumable=("fits",))
