"""CoNLL-2000 chunking: F1 of the chunks with window features, tokens per second."""

from __future__ import annotations

import time
import warnings

import numpy as np

from ..datasets import MissingDataError
from ..report import Report, at_least
from ..sequences import as_rows, chunks, sentences, vocabulary

LEAST_F1 = 0.93
CS = (1000.0,)
QUICK_SENTENCES = 200


def run(report: Report) -> None:
    """Run the section."""
    from cutplane import ChainTagger

    settings = report.settings
    try:
        texts = [sentences(settings.source, part) for part in ("train", "test")]
    except MissingDataError as error:
        report.skip(str(error))
        return
    if settings.quick:
        texts = [some[:QUICK_SENTENCES] for some in texts]
    numbers = vocabulary(texts[0])
    train, test = (as_rows(some, numbers) for some in texts)
    gold = chunks(test.y, test.lengths)
    for C in CS:
        with report.attempt(f"C={C:g}"):
            tagger = ChainTagger(C=C / len(train.lengths), time_limit=5 * settings.tight_seconds)
            wall, cpu = time.perf_counter(), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tagger.fit(train.X, train.y, lengths=train.lengths)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            tagger.predict(test.X, lengths=test.lengths)  # compiles
            begin = time.perf_counter()
            tags = tagger.predict(test.X, lengths=test.lengths)
            rate = len(tags) / (time.perf_counter() - begin)
            found = chunks(tags, test.lengths)
            f1 = 2 * len(found & gold) / max(1, len(found) + len(gold))
            report.say(f"C={C:g}: F1 {100 * f1:.2f} %, {wall:.1f} s, {rate:.0f} tokens/s")
            case = {
                "C": C,
                "sentences": len(train.lengths),
                "tokens": len(train.y),
                "features": train.X.shape[1],
                "f1": f1,
                "accuracy": float(np.mean(tags == test.y)),
                "seconds": wall,
                "cpu_seconds": cpu,
                "tokens_per_second": rate,
                **tagger.results_[0].as_dict(),
            }
            report.add(case, [at_least(f"F1 ≥ {LEAST_F1}", f1, LEAST_F1)], f"C={C:g}")
