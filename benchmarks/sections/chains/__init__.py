"""Sections of the chains benchmark."""

from . import chunking, letters, words

SECTIONS = {"letters": letters.run, "words": words.run, "chunking": chunking.run}
