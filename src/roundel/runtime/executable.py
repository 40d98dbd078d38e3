# SPDX-License-Identifier: Apache-2.0
"""A built module in this process: ``rt["function"](*arrays)``.

A tensor program writes into the arrays passed for its outputs; a graph function returns new ones. A call converts
nothing that need not be: the C runtime gets DLPack's view of each array and checks them all.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..ir import escape, options
from ..ir.dtype import DType
from ..ir.errors import CallError, MachineError, RoundelError, RunError
from . import arrays, boundary, caches, ffi, interrupt, library, metadata, native, nesting, objects, tensors, text
from .metadata import FunctionInfo, Template

_SHAPES_KEPT = 256  # output shapes are remembered for that many combinations of input shapes
_TOO_MANY = 1 << 60  # elements of a result


class OpenLibrary:
    """A library that the C runtime has open. It is closed when the last of its functions, results and executables is gone, and then
    ``unload`` is called, if there is one: nothing points into its code any more. ``keep``: what must live until then."""

    def __init__(self, runtime: ctypes.CDLL, handle: int, keep: Any = None, unload: Callable[[], None] | None = None) -> None:
        self.runtime, self.handle = runtime, handle
        weakref.finalize(self, _close, runtime, handle, keep, unload).atexit = False  # threads may still run it when the process ends

    def release(self, output: native.DLTensor) -> None:
        """Give back the memory of an output that the runtime allocated."""
        self.runtime.roundel_release(self.handle, ctypes.byref(output))


def _close(runtime: ctypes.CDLL, handle: int, keep: Any, unload: Callable[[], None] | None) -> None:
    runtime.roundel_close(handle)
    if unload is not None:
        unload()


class Executable(Mapping[str, "BoundFunction"]):
    """The functions of an open library by name. Safe to call from several threads at once."""

    def __init__(
        self,
        opened: OpenLibrary,
        described: native.RdLibrary,
        functions: dict[str, FunctionInfo],
        extra: dict[str, Any],
    ) -> None:
        self._opened = opened
        self.metadata, self.weights_nbytes = extra, int(described.weights_nbytes)
        self._functions = {}
        self.called: Mapping[str, str] = {}  # names in the module, where those by which functions are exported are others
        self.reopen: Callable[[], Executable] | None = None  # once more, with times of its kernels
        self.code: Callable[[str], bytes | Path] | None = None  # the object or library that has a function of this symbol
        by_name = {escape.name(name): info for name, info in functions.items()}  # as C strings have them
        for index in range(described.num_functions):
            native_function = described.functions[index]
            info = by_name.get(native_function.name.decode()) or metadata.describe(native_function)
            self._functions[info.name] = BoundFunction(opened, index, native_function, info)

    @staticmethod
    def from_address(
        address: int,
        *,
        constants: Sequence[np.ndarray] = (),
        threads: int | None = None,
        profile: bool = False,
        metadata_text: str | None = None,
        runtime: ctypes.CDLL | None = None,
        keep: Any = None,
    ) -> Executable:
        """Open the ``RdLibrary`` at ``address``, which is code in this process that ``keep`` holds in memory.

        ``constants`` has one array for each ``RdConstant`` of each function, in order. Raises MachineError when the
        library is for another CPU, CallError when it is for another runtime, MemoryError.
        """
        runtime = runtime or library.runtime()
        described = native.RdLibrary.from_address(address)
        arrays = [_aligned(c) for c in constants]
        settings = native.RdOptions(num_threads=options.choose("threads", threads) or 0, profile=int(profile))
        if arrays:
            settings.constants = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        handle = ctypes.c_void_p()
        if status := runtime.roundel_open(ctypes.byref(described), ctypes.byref(settings), ctypes.byref(handle)):
            raise not_opened(status, "the module", runtime)
        text = metadata_text if metadata_text is not None else (described.metadata or b"").decode()
        functions, extra = metadata.read(text) if text else ({}, {})
        assert handle.value is not None
        made = Executable(OpenLibrary(runtime, handle.value, (keep, arrays, described)), described, functions, extra)
        made.reopen = partial(Executable.from_address, address, constants=arrays, threads=threads, profile=True, metadata_text=metadata_text,
                              runtime=runtime, keep=keep)
        return made

    def __getitem__(self, name: str) -> BoundFunction:
        found = self._functions.get(self.called.get(name, name))
        if found is None and name not in self.called.values():  # else another function is exported under this name
            found = self._functions.get(name)
        if found is None:
            private = f"; {name} is private (it has no global_symbol)" if name in self.called else ""
            raise KeyError(f"the module has no function {name!r}; it has {', '.join(self._functions)}{private}")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Call the only function, or the one that is called ``main``."""
        return self._functions["main" if "main" in self._functions else next(iter(self._functions))](*args, **named)

    def __repr__(self) -> str:
        return f"Executable({', '.join(self._functions)})"

    @property
    def num_threads(self) -> int:
        """The most threads that one run uses."""
        return self._opened.runtime.roundel_num_threads(self._opened.handle)


def _aligned(constant: np.ndarray) -> np.ndarray:
    dtype = DType(constant.dtype)
    constant = tensors.pack(constant, dtype.bits) if tensors.is_packed(dtype) else np.ascontiguousarray(constant)
    if constant.ctypes.data % 64 == 0:
        return constant
    return tensors.aligned_copy(constant.reshape(-1).view(np.uint8))


_TYPE_ERROR = 3
_TO_CONVERT = 'convert the array first, as x.astype("float32") does for NumPy'
_ERRORS: dict[int, type[Exception]] = {1: RunError, 2: CallError, 3: CallError, 4: MemoryError, 6: MachineError}


def not_opened(status: int, what: str, runtime: ctypes.CDLL) -> Exception:
    """The error of a library that the runtime does not open."""
    kind, why = _ERRORS.get(status, CallError), runtime.roundel_last_error().decode(errors="replace")
    return kind(f"{what} cannot be opened", why=why) if issubclass(kind, RoundelError) else kind(why)
_CALLBACK_ERROR = 5
_registered: list[OpenLibrary] = []  # whose functions the FFI knows


def _raise_callback_error(runtime: ctypes.CDLL) -> None:
    """Raise the error that a registered function raised, as it was: the FFI of this thread has it."""
    ffi.load().Function.__from_extern_c__(library.address(runtime, "rd_ffi_raised"), keep_alive_object=runtime)()


class BoundFunction:
    """One function of an executable. ``info`` tells its parameters and results."""

    def __init__(self, owner: OpenLibrary, index: int, described: native.RdFunction, info: FunctionInfo) -> None:
        self._owner, self._index, self._native, self.info = owner, index, described, info
        self._in_types = [DType(t.dtype) for t in info.inputs]
        self._out_types = [DType(t.dtype) for t in info.outputs]
        self._flat = list(info.arguments) == list(range(len(info.inputs)))
        self._shapes: dict[tuple, tuple] = {}
        self._first = info.result == 0  # alone
        self._single = len(info.outputs) == 1
        self._returns = bool(info.extra.get("returns"))
        text.learn(info.extra.get("texts", ()))
        self._caches = {c.output: c for c in (described.caches[k] for k in range(described.num_caches))}
        self._grown = [(t, self._caches.get(k)) for k, t in enumerate(self._out_types)]  # types of the results, and which of them are caches
        self._plain: dict[Any, tuple] = {}  # by the shapes of the inputs: shapes and types of the results, and what makes them
        self._same_shapes = not described.num_symbols  # whatever the inputs are
        self._invoke = self._array_caller()
        self._torch_results: list[Any] | None = None  # their types, once asked
        self._torch_plans: dict[Any, list[tuple]] = {}  # by the shapes of the inputs: shapes, strides and types of the results

    def __repr__(self) -> str:
        arrow = f" -> {', '.join(map(str, self.info.outputs))}" if self.info.kind == "graph" else ""
        return f"<{self.info.kind} function {self.info.name}({', '.join(map(str, self.info.inputs))}){arrow}>"

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        """Names of the arguments, as they may be given by keyword."""
        info = self.info
        everything = info.inputs if info.kind == "graph" else info.inputs + info.outputs
        names = info.names or tuple(everything[_first(a)].name for a in info.arguments)
        return names[:-1] if self._returns else names

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        if named:
            args = self._positional(args, named)
        if len(args) != len(self.info.arguments) - self._returns:
            args = self._one_by_one(args)
        if self.info.kind != "graph":
            return self._call_returning(args) if self._returns else self._call_program(args)
        results = None
        if self._invoke is not None:
            results = self._call_growing(args, self._invoke) if self._caches else self._call_plain(args, self._invoke)
        if results is None:
            return self._call_graph(args)
        return results[0] if self._first else nesting.assemble(self.info.result, results)

    def _one_by_one(self, args: tuple) -> tuple:
        """Arguments that are given in tuples, lists and dictionaries, as modules of PyTorch take them, or all by name in one. Raises CallError where that does
        not give as many as are taken."""
        count = len(self.info.arguments) - self._returns
        if len(args) == 1 and isinstance(args[0], dict) and set(args[0]) == set(self.argument_names):
            return tuple(args[0][n] for n in self.argument_names)
        if self._flat and len(leaves := nesting.leaves(args, self.argument_names)) == count:
            return tuple(leaves)
        wanted = f"{count} argument{'s' if count != 1 else ''} ({', '.join(self.argument_names)})"
        writes = ", ".join(t.name for t in self.info.outputs) if self.info.kind != "graph" and not self._returns else ""
        hint = f"a tensor program takes arrays for what it writes too: {writes}" if writes and len(args) < count else ""
        raise CallError(f"{self.info.name} takes {wanted}, {len(args)} were given", hint=hint)

    def _array_caller(self) -> arrays.Invoke | None:
        """Runs the function on arrays that need no preparation; None: there is always something to convert."""
        info, types = self.info, (*self._in_types, *self._out_types)
        plain = info.kind == "graph" and self._flat and not info.extra and info.inputs and info.outputs
        if not plain or any(t.lanes != 1 or tensors.is_packed(t) for t in types) or any(t.scalar for t in (*info.inputs, *info.outputs)):
            return None
        return arrays.caller(self._owner.runtime, self._owner.handle, self._index, [t.numpy for t in types])

    def _call_plain(self, args: tuple, invoke: arrays.Invoke) -> tuple | None:
        """NumPy arrays to NumPy arrays, with nothing to convert: a third of the time of other calls. None: others."""
        for a in args:
            if type(a) is not np.ndarray:
                return self._call_torch(args, invoke)
        key = None if self._same_shapes else args[0].shape if len(args) == 1 else tuple([a.shape for a in args])
        plan = self._plain.get(key)
        if plan is None:
            self._plan(args, key)
        if not plan:
            return None
        described, make = plan
        results = (make(*described[0]),) if self._single else tuple([make(s, t) for s, t in described])
        status = invoke(args, results)
        if status:
            if status < 0:
                return None
            self._raise(status)
        return results

    def _call_growing(self, args: tuple, invoke: arrays.Invoke) -> tuple | None:
        """The same where results append to inputs, each in the memory in which its input lies already where that can be."""
        for a in args:
            if type(a) is not np.ndarray:
                return None
        shapes = self._output_shapes(args)
        if None in shapes:
            return None
        with caches.Growth() as growth:
            results = tuple([tensors.empty(s, t.numpy) if c is None else growth.array(args[c.input], s, c.axis, t)
                             for s, (t, c) in zip(shapes, self._grown)])
            if status := invoke(args, results):
                if status > 0:
                    self._raise(status)
                self._run([tensors.view(v) for v in (*args, *results)])  # says what is wrong with them
        return results

    def _call_torch(self, args: tuple, invoke: arrays.Invoke) -> tuple | None:
        """The same with tensors of PyTorch, which describes them without Python. None: others, and whatever it cannot describe."""
        if (torch := tensors.torch_module(args[0])) is None or (types := self._torch_types(torch)) is None:
            return None
        describe, kinds = arrays.describer(torch.Tensor), (torch.Tensor, torch.nn.Parameter)
        try:
            for a in args:
                if type(a) not in kinds or not a.is_cpu or a.is_neg():
                    return None
            key = None if self._same_shapes else tuple([a.shape for a in args])
            plan = self._torch_plans.get(key)
            if plan is None:
                if describe is None or None in (shapes := self._output_shapes(args)):
                    return None
                if len(self._torch_plans) >= _SHAPES_KEPT:
                    self._torch_plans.clear()
                plan = self._torch_plans[key] = [(s, _steps(s), t) for s, t in zip(shapes, types)]
            results = tuple([torch.empty_strided(s, steps, dtype=t) for s, steps, t in plan])  # half the time of torch.empty
            status = invoke(args, results, describe)
        except Exception:  # such as of a sparse tensor; the general way says what to do
            return None
        if status > 0:
            self._raise(status)
        return None if status else results

    def _torch_types(self, torch: Any) -> list[Any] | None:
        """PyTorch's types of the results; None where it lacks one, or where a tensor may be a conjugate view."""
        if self._torch_results is None:
            names = [t.element for t in (*self._in_types, *self._out_types)]
            known = all(hasattr(torch, n) and not n.startswith("complex") for n in names)
            self._torch_results = [getattr(torch, n) for n in names[len(self._in_types) :]] if known else []
        return self._torch_results or None

    def _plan(self, args: tuple, key: Any) -> None:
        """Prepare the next call with arrays of these shapes. This one goes the general way, which says what is wrong with them."""
        shapes = self._output_shapes(list(args))
        if len(self._plain) >= _SHAPES_KEPT:
            self._plain.clear()
        if None in shapes:  # only the run can tell
            self._plain[key] = ()
            return
        types = [t.numpy for t in self._out_types]
        small = all([tensors.is_small(s, t) for s, t in zip(shapes, types)])
        self._plain[key] = tuple(zip(shapes, types)), np.empty if small else tensors.empty

    def _positional(self, args: tuple, named: dict[str, Any]) -> tuple:
        names = self.argument_names
        problems = {
            "unknown": [n for n in named if n not in names],
            "given twice": [n for n in names[: len(args)] if n in named],
            "missing": [n for n in names[len(args) :] if n not in named],
        }
        listed = "; ".join(f"{kind}: {', '.join(which)}" for kind, which in problems.items() if which)
        if listed:
            raise CallError(f"the arguments do not fit {self.info.name}({', '.join(names)}): {listed}")
        return (*args, *(named[n] for n in names[len(args) :]))

    def _call_graph(self, args: tuple) -> Any:
        if "object_inputs" in self.info.extra:
            with objects.known():
                return self._call_native(args)
        return self._call_native(args)

    def _call_native(self, args: tuple) -> Any:
        given = args if self._flat else nesting.flatten(self.info.arguments, args, len(self.info.inputs))
        extra = self.info.extra
        flat = boundary.take(given, extra) if extra else given
        torch = None if all(type(a) is np.ndarray for a in flat) else tensors.torch_of(flat)
        inputs = [tensors.prepare(a, t) for a, t in zip(flat, self._in_types)]
        shapes = self._output_shapes(inputs)
        if self._caches:
            outputs = self._run_growing(inputs, shapes, torch)
        else:
            outputs = [_new_output(s, t, torch) for s, t in zip(shapes, self._out_types)]
            self._run([tensors.view(v) for v in (*inputs, *outputs)])
        described = zip(outputs, self._out_types, self.info.outputs)
        results = [self._finish(o, t, info.scalar, torch) for o, t, info in described]
        if not extra:
            return nesting.assemble(self.info.result, results)
        kept = boundary.give(results, given, extra)
        if len(kept) == len(results):
            return nesting.assemble(self.info.result, kept)
        return kept[0] if len(kept) == 1 else tuple(kept)

    def _run_growing(self, inputs: list, shapes: tuple, torch: Any) -> list:
        """Run, with memory for results that append to an input in which it lies already where that can be."""
        outputs = []
        with caches.Growth() as growth:
            for k, (shape, dtype) in enumerate(zip(shapes, self._out_types)):
                cache = self._caches.get(k)
                grown = cache is not None and shape is not None
                made = growth.result(inputs[cache.input], shape, cache.axis, dtype, torch) if grown else _new_output(shape, dtype, torch)
                outputs.append(made)
            self._run([tensors.view(v) for v in (*inputs, *outputs)])
        return outputs

    def _call_returning(self, args: tuple) -> Any:
        """A tensor program that returns a scalar: it stores it into an array without dimensions behind its arguments."""
        place = (self._in_types + self._out_types)[_first(self.info.arguments[-1])]
        result = np.zeros((), place.numpy)
        self._call_program((*args, result))
        return result.item()

    def _call_program(self, args: tuple) -> None:
        flat = nesting.flatten(self.info.arguments, args, len(self.info.inputs) + len(self.info.outputs))
        count = len(self.info.inputs)
        for value in flat[count:]:
            _check_writable(value)
        views = [tensors.view(tensors.prepare(a, t)) for a, t in zip(flat, self._in_types + self._out_types)]
        self._run(views)
        for value, (_, keep), dtype in zip(flat[count:], views[count:], self._out_types):
            if isinstance(keep, tensors.Described) and isinstance(value, np.ndarray) and keep.keep[2] is not value:
                value[...] = _read_back(keep, dtype)  # it was packed or copied on the way in

    def _run(self, views: list[tuple[int, Any]]) -> None:
        runtime = self._owner.runtime
        pointers = (ctypes.c_void_p * len(views))(*[address for address, _ in views])
        if status := runtime.rd_invoke(self._owner.handle, self._index, pointers):
            self._raise(status)

    def _raise(self, status: int) -> NoReturn:
        """The error of the last run of this thread."""
        runtime = self._owner.runtime
        if status == _CALLBACK_ERROR:
            _raise_callback_error(runtime)
        if status == interrupt.STATUS:
            interrupt.reraise(runtime)
        why = runtime.roundel_last_error().decode(errors="replace")
        raise CallError(why, hint=_TO_CONVERT) if status == _TYPE_ERROR else _ERRORS.get(status, RunError)(why)

    def seconds(self, sets: Sequence[Sequence[Any]], calls: int) -> float:
        """Seconds that ``calls`` calls in a row take, timed without Python in between. Call k has the arguments ``sets[k % len(sets)]``, contiguous
        arrays of the right types; behind those of a graph function stand arrays for its results. Raises as a call does, and CallError for a file's
        functions."""
        return self.timer(sets)(calls)

    def timer(self, sets: Sequence[Sequence[Any]]) -> Callable[..., float]:
        """The same for many measurements: ``timer(calls, first)`` begins with set number ``first`` (default 0)."""
        runtime, nanoseconds = self._owner.runtime, ctypes.c_int64()
        if not hasattr(runtime, "rd_time_calls"):
            raise CallError(f"{self.info.name} cannot be timed so", why="it comes from a saved file, whose runtime has no timer", hint="use time_evaluator")
        count, types = len(self.info.inputs) + len(self.info.outputs), self._in_types + self._out_types
        given = self.info.arguments if self.info.kind != "graph" else (*self.info.arguments, *range(len(self.info.inputs), count))
        views: dict[tuple[int, int], Any] = {}  # by position and array: most sets have most of their arrays in common
        pointers = []
        for args in sets:
            flat = list(enumerate(nesting.flatten(given, args, count)))
            views |= {(k, id(a)): (tensors.view(tensors.prepare(a, types[k])), a) for k, a in flat if (k, id(a)) not in views}
            pointers.append((ctypes.c_void_p * count)(*[views[k, id(a)][0][0] for k, a in flat]))
        table = (ctypes.c_void_p * (2 * len(sets)))(*2 * [ctypes.addressof(p) for p in pointers])  # twice, to begin anywhere

        def seconds(calls: int, first: int = 0, keep: Any = (views, pointers)) -> float:
            start = ctypes.c_void_p(ctypes.addressof(table) + first % len(sets) * ctypes.sizeof(ctypes.c_void_p))
            if status := runtime.rd_time_calls(ctypes.c_void_p(self._owner.handle), self._index, start, len(sets), ctypes.c_int64(calls),
                                               ctypes.byref(nanoseconds)):
                raise _ERRORS.get(status, RunError)(runtime.roundel_last_error().decode(errors="replace"))
            return nanoseconds.value * 1e-9

        return seconds

    def _output_shapes(self, inputs: Sequence) -> tuple:
        """Shape of each output for these inputs, or None where only the run can tell. Inputs that do not fit give None here, and an error in the call."""
        try:
            key = tuple([inputs[k].shape[at] if at >= 0 else int(inputs[k]) for k, at in self._solved.values()])
        except IndexError:  # of an input with too few dimensions
            return (None,) * self._native.num_outputs
        known = self._shapes.get(key)
        if known is None:
            known = self._evaluate_shapes(key)
            if len(self._shapes) >= _SHAPES_KEPT:
                self._shapes.clear()
            self._shapes[key] = known
        return known

    @cached_property
    def _solved(self) -> dict[int, tuple[int, int]]:
        """The input and its dimension (-1: its value) that is a symbol, of each but the room of caches."""
        described = self._native
        found: dict[int, tuple[int, int]] = {}
        rooms = [c.symbol for c in self._caches.values()]
        for k in range(described.num_inputs):
            param = described.params[k]
            for position in range(max(param.ndim, 1) if param.dims else 0):
                symbol = -1 - dim if native.COMPUTED < (dim := param.dims[position]) < 0 else -1
                if symbol >= 0 and symbol not in rooms:
                    found.setdefault(symbol, (k, -1 if param.ndim == native.SCALAR else position))
        return found

    @cached_property
    def _unsolved(self) -> Any:
        """The symbols before inputs tell any: -1, and no room of caches."""
        symbols = [-1] * self._native.num_symbols or [0]
        for cache in self._caches.values():
            symbols[cache.symbol] = 0
        return (ctypes.c_int64 * len(symbols))(*symbols)

    @cached_property
    def _ranks(self) -> list[int]:
        described = self._native
        return [max(described.params[i].ndim, 0) for i in range(described.num_inputs + described.num_outputs)]

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """Where the dimensions of each output lie among those of all parameters."""
        ends = list(itertools.accumulate(self._ranks, initial=0))
        return list(itertools.pairwise(ends))[self._native.num_inputs :]

    def _evaluate_shapes(self, values: Sequence[int]) -> tuple:
        """Ask the module, given the values of the symbols that inputs tell."""
        ranks, symbols = self._ranks, (ctypes.c_int64 * len(self._unsolved)).from_buffer_copy(self._unsolved)
        for symbol, value in zip(self._solved, values):
            symbols[symbol] = value
        if min(symbols) < 0:
            return (None,) * self._native.num_outputs
        dims = tuple(self._all_dims(symbols, sum(ranks)))
        shapes = [dims[a:b] for a, b in self._spans]
        if min(dims, default=0) < 0 or max(dims, default=0) ** max(ranks, default=0) >= _TOO_MANY:  # then some may be what only the run can tell
            return tuple([None if any(d < 0 for d in s) or math.prod(s) >= _TOO_MANY else s for s in shapes])
        return tuple(shapes)

    def _all_dims(self, symbols: Any, count: int) -> list[int]:
        if self._ask_shapes is not None:
            dims = (ctypes.c_int64 * max(count, 1))()
            self._ask_shapes(symbols, dims)
            return dims[:count]
        described = self._native
        return [
            d if (d := described.params[p].dims[i]) >= 0 or d == native.COMPUTED else symbols[-1 - d]
            for p in range(described.num_inputs + described.num_outputs)
            for i in range(max(described.params[p].ndim, 0))
        ]

    @cached_property
    def _ask_shapes(self) -> Callable[..., None] | None:
        """Evaluates the dimensions of all parameters, where some are expressions."""
        at = self._native.shapes
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(at) if at else None

    def _finish(self, output: Any, dtype: DType, scalar: bool, torch: Any) -> Any:
        if isinstance(output, tensors.Described):
            owner = self._owner
            if output.keep[2] is not None:  # packed
                output = _read_back(output, dtype)
            else:
                output = tensors.owned_array(output.tensor, owner.release)
            if torch is not None and not scalar:
                return (
                    torch.from_numpy(output)
                    if output.dtype.kind in "biufc"
                    else torch.from_numpy(output.view(np.uint8))
                )
        return output.item() if scalar else output

    def arena_nbytes(self, /, **sizes: int) -> int:
        """Bytes that one run takes for what lies between its inputs and outputs; ``sizes`` are those of symbolic dimensions, by name.

        Scratch of single kernels is not counted, nor tensors whose size only data tells. Raises CallError where a size is missing.
        """
        described = self._native
        if not described.arena_size:
            return 0
        names = native.strings(described.symbols, described.num_symbols)
        rooms = {names[c.symbol] for c in self._caches.values()}
        if lacking := [n for n in names if n not in sizes and n not in rooms]:
            raise CallError(f"the memory of {self.info.name} depends on {', '.join(lacking)}", hint=f"give {lacking[0]}=...")
        values = (ctypes.c_int64 * max(len(names), 1))(*[sizes.get(n, 0) for n in names])
        return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(described.arena_size)(values)

    def register(self, name: str) -> None:
        """Make it a function of the FFI under that name, for `get_func`, other compiled modules, C++ and Rust.

        It takes inputs, then outputs, which it writes in place. The module stays loaded for the rest of the process.
        """
        runtime = self._owner.runtime
        ffi.load()
        if runtime.rd_ffi_register(self._owner.handle, self._index, name.encode()):
            raise CallError(
                f"{self.info.name} cannot be registered as {name!r}", why=runtime.roundel_last_error().decode(errors="replace")
            )
        _registered.append(self._owner)

    def profile(self, reset: bool = True) -> dict[str, tuple[int, float]]:
        """Calls and seconds of each kernel since the last reset; the module must be built and opened with profiling."""
        count = self._native.num_kernels
        nanoseconds, calls = (ctypes.c_int64 * max(count, 1))(), (ctypes.c_int64 * max(count, 1))()
        runtime = self._owner.runtime
        if runtime.roundel_profile(self._owner.handle, escape.name(self.info.name).encode(), nanoseconds, calls, int(reset)):
            raise CallError(
                f"there are no times of {self.info.name}'s kernels", why=runtime.roundel_last_error().decode(errors="replace")
            )
        names = self.info.kernels or native.strings(self._native.kernels, count)
        return {name: (calls[i], nanoseconds[i] * 1e-9) for i, name in enumerate(names)}


def _first(template: Template) -> int:
    while isinstance(template, list):
        template = template[0]
    return template


def _check_writable(value: Any) -> None:
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        raise CallError("an array passed for an output is read-only", hint="pass a copy")
    if tensors.torch_module(value) is not None and (value.is_conj() or value.is_neg()):
        raise CallError("a tensor passed for an output is a conjugate or negative view", hint="pass tensor.resolve_conj().resolve_neg()")
    if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__"):
        raise CallError(
            f"{type(value).__name__} was passed for an output",
            hint="pass an array to be written into, such as numpy.empty(shape, dtype)",
        )


def _steps(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of contiguous elements."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def _new_output(shape: tuple[int, ...] | None, dtype: DType, torch: Any) -> Any:
    if shape is None:
        return tensors.Described(None, dtype, ())
    if tensors.is_packed(dtype):
        packed = np.empty(dtype.nbytes(int(np.prod(shape, dtype=np.int64))), np.uint8)
        return tensors.Described(packed.ctypes.data, dtype, shape, keep=packed)
    if torch is not None:
        torch_type = getattr(torch, dtype.element, None)
        if torch_type is not None:
            return torch.empty(shape, dtype=torch_type)
    return tensors.empty(shape, dtype.numpy)


def _read_back(stand_in: tensors.Described, dtype: DType) -> np.ndarray:
    memory: np.ndarray = stand_in.keep[2]
    return tensors.unpack(memory, dtype, stand_in.shape) if tensors.is_packed(dtype) else memory
