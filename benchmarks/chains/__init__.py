"""The chains benchmark: OCR letters and chunking with ChainTagger."""

from ..runner import Suite
from . import chunking, letters, peers, words

SECTIONS = {
    "letters": letters.run,
    "words": words.run,
    "chunking": chunking.run,
    "peers": peers.run,
}

SUITE = Suite("chains", __doc__, SECTIONS, ("SVM-hmm",), resumable=("letters", "peers"))
