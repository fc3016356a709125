"""Fuzz the svmlight reader for a while: ``python tests/fuzz/fuzz_svmlight.py MINUTES [SEED]``.

Texts made from the corpus and from parts that are likely to matter are read in pieces of several
sizes and compared with a reference in plain Python. Also kept an eye on: crashes (the process
dies), hangs (the process ends with a traceback), texts that take long, and what ``iter_svmlight``
and ``dump_svmlight`` make of them. Every text that shows a fault is put into the corpus
folder, where the default tests find it.
"""

from __future__ import annotations

import faulthandler
import hashlib
import io
import logging
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))

from svmlight_check import attempt, check, same
from svmlight_reference import CORPUS, random_text

from cutplane.data.svmlight import dump_svmlight, iter_svmlight

SIZES = (1, 3, 6, 7, 10, 16, 33, 64, 100, 200)  # small ones are slow, and find no more
SLOW = 1.0  # seconds of the processor for one text
HANG = 60.0  # seconds by the clock


def again(text: bytes, rng: random.Random) -> str | None:
    """Written and read again; and read in chunks."""
    found = attempt(text, 1 << 20, zero_based=False, qid="auto", cost=True)
    if isinstance(found, str):
        return None
    X, y, qid, cost = found
    target = io.BytesIO()
    dump_svmlight(X, y, target, qid=qid, cost=cost)
    options = {"zero_based": False, "qid": "auto", "cost": True}
    back = attempt(target.getvalue(), 64, n_features=max(X.shape[1], 1), **options)
    if not X.shape[1]:
        return None  # read back with the one feature that n_features must have
    if isinstance(back, str) or not same((*back, None), (*found, None)):
        return f"not the same after writing: {back!r}"
    rows = rng.randrange(1, 5)
    chunks = list(iter_svmlight(io.BytesIO(text), rows=rows, qid="auto", cost=True))
    if [chunk[1].tolist() for chunk in chunks] != [
        y[k : k + rows].tolist() for k in range(0, len(y), rows)
    ]:
        return "other chunks"
    if sum(chunk[0].nnz for chunk in chunks) != X.nnz:
        return "other numbers in chunks"
    return None


def main() -> int:
    faulthandler.enable()
    logging.getLogger("cutplane").setLevel(logging.ERROR)
    attempt(b"1 1:1", 1 << 20)  # compile
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 10**6
    rng = random.Random(seed)
    seeds = [file.read_bytes() for file in sorted(CORPUS.iterdir())]
    end = time.monotonic() + 60.0 * minutes
    texts = faults = accepted = 0
    slowest = 0.0
    while time.monotonic() < end:
        text = random_text(rng, seeds)
        options = {"zero_based": rng.choice(["auto", True, False]), "sort": rng.random() < 0.3}
        faulthandler.dump_traceback_later(HANG, exit=True)
        start = time.process_time()
        fault = check(text, sizes=(rng.choice(SIZES),), **options)
        fault = fault or again(text, rng)
        seconds = time.process_time() - start
        faulthandler.cancel_dump_traceback_later()
        texts += 1
        accepted += not isinstance(attempt(text, 1 << 20), str)
        slowest = max(slowest, seconds)
        if seconds > SLOW:
            print(f"slow: {seconds:.1f} s for {text!r}", flush=True)
        if fault:
            faults += 1
            name = hashlib.blake2b(text, digest_size=6).hexdigest()
            (CORPUS / f"found-{name}.svm").write_bytes(text)
            print(f"{fault}\n  {text!r}\n  {options}", flush=True)
            if faults > 20:
                break
    print(
        f"seed {seed}: {texts} texts, {accepted} of them accepted, {faults} faults, "
        f"slowest {slowest:.2f} s"
    )
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
