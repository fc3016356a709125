"""Fuzz the loaders of models and checkpoints: ``python tests/fuzz/fuzz_models.py MINUTES [SEED]``.

Files of every kind of model, and those in the corpus, are damaged, or changed with digests that
fit, and loaded; what is accepted must predict, or refuse, without ending the process. Also kept an
eye on: hangs (the process ends with a traceback), files that take long, memory. Every file
that shows a fault is put into the corpus folder, where the default tests find it.
"""

from __future__ import annotations

import faulthandler
import hashlib
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from model_mutations import (
    CORPUS,
    check_checkpoint,
    check_file,
    check_text,
    crafted,
    damaged_bytes,
    damaged_text,
    good_checkpoint,
    good_files,
    good_texts,
)

SLOW = 2.0  # seconds of the processor for one file
HANG = 120.0  # seconds by the clock
MEMORY = 1 << 30  # bytes more than in the beginning


def attempt(rng: random.Random, files: list[bytes], texts: list[bytes], folder: Path):
    """One file: its bytes, its kind, and the fault if there is one."""
    if rng.random() < 0.25:
        data = damaged_text(rng.choice(texts), rng)
        return data, "text", check_text(data)
    mutate = rng.choice((damaged_bytes, crafted, crafted))
    if rng.random() < 0.3:
        data = mutate(files[-1], rng)
        return data, "checkpoint", check_checkpoint(data, folder / "c")
    data = mutate(rng.choice(files), rng)
    return data, "model", check_file(data)


def main() -> int:
    faulthandler.enable()
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 10**6
    rng = random.Random(seed)
    count = faults = 0
    kinds = {"text": 0, "checkpoint": 0, "model": 0}
    slowest = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = good_texts() + [file.read_bytes() for file in sorted(CORPUS.glob("*.text"))]
        files = good_files() + [file.read_bytes() for file in sorted(CORPUS.glob("*.model"))]
        files.append(good_checkpoint(folder / "c"))
        check_checkpoint(files[-1], folder / "c")  # compile
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        end = time.monotonic() + 60.0 * minutes
        while time.monotonic() < end and faults < 20:
            faulthandler.dump_traceback_later(HANG, exit=True)
            start = time.process_time()
            data, kind, fault = attempt(rng, files, texts, folder)
            seconds = time.process_time() - start
            faulthandler.cancel_dump_traceback_later()
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
            count, slowest = count + 1, max(slowest, seconds)
            kinds[kind] += 1
            if used > MEMORY:
                fault, before = f"took {used / 1e6:.0f} MB", before + used
            if seconds > SLOW:
                print(f"slow: {seconds:.1f} s for a {kind}", flush=True)
            if fault:
                faults += 1
                label = hashlib.blake2b(data, digest_size=6).hexdigest()
                (CORPUS / f"found-{label}.{kind}").write_bytes(data)
                print(f"{kind}: {fault}  (file {count})", flush=True)
    told = ", ".join(f"{number} {kind}s" for kind, number in kinds.items())
    print(f"seed {seed}: {told}, {faults} faults, slowest {slowest:.2f} s")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
