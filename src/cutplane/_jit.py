"""The one way this project compiles a loop.

Kernels release the GIL and never start threads; executors run them in threads
(see ``cutplane.exec``). numba caches compiled code on disk, next to the source or in
the user's cache folder. If neither folder can be written, every process compiles
the kernels again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.core.runtime import rtsys
from numba.extending import intrinsic

# With these flags the compiler may reorder sums, and so use vector instructions. NaN and infinity
# keep their meaning, so the flags are safe for kernels that may meet them.
REASSOCIATE = {"reassoc", "contract", "nsz"}

# Do not compile an entry that C code could call: nothing here uses it, and it takes a tenth of the
# time of a compilation.
NO_ENTRY: Any = {"no_cfunc_wrapper": True}


def jit(
    function: Callable[..., Any] | None = None, *, reassociate: bool = False, inline: bool = False
) -> Any:
    """Compile ``function`` on first use, without the GIL.

    Parameters
    ----------
    function : callable
        A kernel on flat arrays. If its name begins with an underscore, only other kernels may call
        it: it has no entry from Python and no cache of its own, which halves its compilation.
    reassociate : bool, default=False
        Let the compiler change the order of floating point sums, so that dense
        reductions use vector instructions. The compiler fixes the order, so results
        stay reproducible.
    inline : bool, default=False
        Compile the function as a part of each kernel that calls it. If only one kernel calls it,
        this halves the compilation. The order of its sums then follows the flags of the caller.
    """
    if function is None:
        return lambda f: jit(f, reassociate=reassociate, inline=inline)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", **NO_ENTRY}
    if reassociate:
        options["fastmath"] = REASSOCIATE
    if inline:
        options["inline"] = "always"
    if function.__name__.startswith("_"):
        options["no_cpython_wrapper"] = True
        return numba.njit(**options)(function)
    try:
        return _tolerant(_stamped(numba.njit(cache=True, **options)(function)))
    except RuntimeError:  # numba found no folder for its cache that can be written
        return numba.njit(**options)(function)


@functools.cache
def _sources() -> tuple[tuple[int, int], ...]:
    """Modification time and size of every file whose functions are compiled."""
    here = Path(__file__).parent
    single = (Path(__file__), here / "_elementary.py", here / "losses.py")
    files = (*single, *sorted((here / "loops").glob("*.py")))
    return tuple((stat.st_mtime_ns, stat.st_size) for stat in map(os.stat, files))


def _stamped(dispatcher: Any) -> Any:
    """Have numba compile again when any of the ``_sources`` has changed.

    numba itself looks only at the file of the function, but loops call helpers of other files.
    """
    file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = _sources()
    return dispatcher


def _tolerant(dispatcher: Any) -> Any:
    """Ignore errors of numba's cache on disk.

    If the disk is full, the call succeeds without a cache entry. A damaged entry is compiled anew.
    """
    cache: Any = getattr(dispatcher, "_cache", None)
    if cache is None:  # numba is switched off
        return dispatcher
    load, save = _loader(cache), cache.save_overload

    def load_if_sound(signature: Any, context: Any) -> Any:
        try:
            return load(signature, context)
        except Exception:  # unpickling raises many kinds of errors for a damaged entry
            with contextlib.suppress(OSError):
                cache.flush()  # forget all entries of the function
            return None

    def save_if_possible(signature: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            save(signature, data)

    cache.load_overload, cache.save_overload = load_if_sound, save_if_possible
    return dispatcher


def _loader(cache: Any) -> Callable[[Any, Any], Any]:
    """A function that loads compiled code from the cache.

    numba's own ``load_overload`` also prepares to compile: it imports and registers all that
    compiled functions may call, which takes 0.2 s in every process. Code that is already compiled
    needs only numba's run time, and a compilation makes the preparations by itself.
    """
    parts = ("_load_overload", "_guard_against_spurious_io_errors")
    if not all(hasattr(cache, name) for name in parts):  # numba older than 0.60 or newer than 0.68
        return cache.load_overload

    def load(signature: Any, context: Any) -> Any:
        rtsys.initialize(context)
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, context)

    return load


# -- loops that are compiled, because the cache does not have them ---------------


class Compilations(event.Listener):
    """Counts the loops of this package that numba compiles, and the seconds that this takes.

    numba compiles a loop together with the loops that it calls; together they count once. numba
    compiles one loop at a time, whatever the number of threads.

    Parameters
    ----------
    begin : callable, optional
        Called whenever a compilation begins.

    Attributes
    ----------
    loops : int
    seconds : float
    """

    def __init__(self, begin: Callable[[], None] | None = None) -> None:
        self.loops = 0
        self.seconds = 0.0
        self._begin = begin
        self._inside: list[bool] = []  # for each running compilation, whether the loop is ours
        self._started = 0.0

    def on_start(self, event: Any) -> None:
        """numba calls this when a compilation begins."""
        # Functions made from text, as numba's jitclass makes them, have no module.
        module = event.data["dispatcher"].py_func.__module__ or ""
        ours = module.partition(".")[0] == __name__.partition(".")[0]
        if ours and not any(self._inside):
            self._started = time.perf_counter()
            if self._begin is not None:
                self._begin()
        self._inside.append(ours)

    def on_end(self, event: Any) -> None:
        """numba calls this when a compilation has ended."""
        # The compilation may have begun before the listener was installed; then skip it.
        if self._inside and self._inside.pop() and not any(self._inside):
            self.loops += 1
            self.seconds += time.perf_counter() - self._started


def when_compiling(begin: Callable[[], None]) -> None:
    """Call ``begin`` whenever a loop is compiled, until the process ends."""
    event.register("numba:compile", Compilations(begin))


@contextlib.contextmanager
def compilations() -> Iterator[Compilations]:
    """Count compilations while the block runs."""
    counts = Compilations()
    with event.install_listener("numba:compile", counts):
        yield counts


# -- instructions that numba does not have -------------------------------------


def _number(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A pointer to array[index]."""
    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, kind, array, [arguments[1]], wraparound=False)


@intrinsic
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Tell the processor to load the cache line of array[index], without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, *[number] * 3])
        )
        where = builder.bitcast(_number(context, builder, signature, arguments), byte)
        # The arguments say: for reading (0), into the second level of the cache (2), data (1).
        builder.call(function, [where, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


@intrinsic
def eight_bytes(typing_context, text, index):  # type: ignore[no-untyped-def]
    """The bytes from text[index] on as one number, the first one lowest."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where = _number(context, builder, signature, arguments)
        return builder.load(builder.bitcast(where, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(text, types.uint64), generate


@intrinsic
def leading_zeros(typing_context, number):  # type: ignore[no-untyped-def]
    """Number of 0 bits above the highest 1 bit of a number, which must not be 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), generate


@intrinsic
def trailing_zeros(typing_context, number):  # type: ignore[no-untyped-def]
    """Number of 0 bits below the lowest 1 bit of a number; 64 if the number is 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


@intrinsic
def high_product(typing_context, a, b):  # type: ignore[no-untyped-def]
    """The upper 64 of the 128 bits of a·b."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(number, wide) for number in arguments))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def bits(typing_context, number):  # type: ignore[no-untyped-def]
    """The 64 bits of a float64, as an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def from_bits(typing_context, number):  # type: ignore[no-untyped-def]
    """The float64 that has these 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate
