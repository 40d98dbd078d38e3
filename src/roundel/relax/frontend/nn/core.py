# SPDX-License-Identifier: Apache-2.0
"""Tensors and parameters of models written in Python, modules that hold them, and their export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from roundel.builder import BlockBuilder, bind_params
from roundel.ir import above, graph, tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.errors import BuilderError
from roundel.ir.module import IRModule

from . import spec as specs


class Tensor:
    """A value of the function that is being exported; each operation binds a variable."""

    def __init__(self, expr: graph.GraphExpr) -> None:
        self._expr: Any = expr

    @staticmethod
    def placeholder(shape: Sequence[Any], dtype: str = "float32", name: str = "tensor") -> Tensor:
        """A tensor that stands for what a call makes (``op.extern``, ``op.tensor_ir_op``): shape and type count."""
        return Tensor(graph.Var(name, graph.TensorInfo(tuple(map(tir.as_index, shape)), dtype)))

    @property
    def expr(self) -> graph.GraphExpr:
        """The graph value."""
        return self._expr

    @property
    def shape(self) -> list[Any]:
        """Dimensions: numbers, and expressions where they are symbolic."""
        return [d.value if isinstance(d, tir.IntImm) else d for d in self.expr.sinfo.shape]  # type: ignore[attr-defined]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """The type of the elements."""
        return str(self.expr.sinfo.dtype)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        """A method is the operator of that name: ``x.reshape(2, 3)`` takes one shape or its numbers."""
        from . import op  # operators take and give tensors

        if name.startswith("_"):
            raise AttributeError(name)
        call = getattr(op, name)
        if name not in ("reshape", "permute_dims", "broadcast_to"):
            return lambda *args, **kwargs: call(self, *args, **kwargs)
        return lambda *dims, **kwargs: call(self, dims[0] if len(dims) == 1 and isinstance(dims[0], tuple | list) else dims, **kwargs)

    def __repr__(self) -> str:
        return f"Tensor({self.shape}, {self.dtype})"


def _operator(name: str, swapped: bool) -> Any:
    def apply(self: Tensor, *others: Any) -> Tensor:
        from . import op

        return getattr(op, name)(*(reversed((self, *others)) if swapped else (self, *others)))

    return apply


for _python, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "pow": "power", "mod": "mod",
                       "matmul": "matmul", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "neg": "negative"}.items():
    setattr(Tensor, f"__{_python}__", _operator(_name, False))
    if _python in ("add", "sub", "mul", "truediv"):
        setattr(Tensor, f"__r{_python}__", _operator(_name, True))


class Object:
    """A value that a method hands to functions of the runtime, such as a cache: ``R.Object``. Derive classes whose methods make the calls."""

    def __init__(self, expr: graph.GraphExpr) -> None:
        self.expr = expr

    @classmethod
    def of(cls, expr: graph.GraphExpr) -> Any:
        """The object that an argument is."""
        made = cls.__new__(cls)
        Object.__init__(made, expr)
        return made


class Parameter(Tensor):
    """A weight: its shape and type, and its values (``data``) where they are set. A dimension that is text is symbolic."""

    def __init__(self, shape: Sequence[Any], dtype: str | None = None) -> None:
        self._shape, self._dtype, self._data = tuple(shape), dtype, None
        self._expr = None

    @property
    def expr(self) -> graph.GraphExpr:
        """The graph variable that stands for the parameter while its function is made."""
        if self._expr is None:
            raise BuilderError("a parameter has no value outside of an export", hint="module.export_tvm({...})")
        return self._expr

    @property
    def shape(self) -> list[Any]:
        """Sizes, integers or symbols."""
        return list(self._shape) if self._expr is None else super().shape

    @property
    def dtype(self) -> str:
        """The data type, such as ``float32``."""
        return str(DType(self._dtype or "float32"))

    @property
    def data(self) -> np.ndarray | None:
        """The values, None where there are none yet."""
        return self._data

    @data.setter
    def data(self, values: Any) -> None:
        array = np.asarray(values.numpy() if hasattr(values, "numpy") else values)
        wrong = len(array.shape) != len(self._shape) or any(isinstance(d, int) and d != n for d, n in zip(self._shape, array.shape, strict=False))
        if wrong or DType(array.dtype) != self.dtype:
            raise BuilderError("the values do not fit the parameter", why=f"it is {self.dtype} {self._shape}, they are {array.dtype} {array.shape}")
        self._data = array

    def to(self, dtype: str) -> None:
        """Make it of another type; values are converted."""
        self._dtype = dtype
        self._data = None if self._data is None else self._data.astype(DType(dtype).numpy)


class Module:
    """Base of models and their layers: assign parameters and modules in ``__init__``, compute in ``forward``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Parameters of the module and those in it, with names such as ``layers.0.weight``; each once."""
        yield from _once(self._named(prefix))

    def _named(self, prefix: str) -> Iterator[tuple[str, Parameter]]:
        for name, value in self._items():
            full = f"{prefix}.{name}" if prefix else name
            if isinstance(value, Parameter):
                yield full, value
            elif isinstance(value, Module):
                yield from value._named(full)

    def _items(self) -> Iterator[tuple[str, Any]]:
        yield from vars(self).items()

    def parameters(self) -> list[Parameter]:
        """The parameters."""
        return [p for _, p in self.named_parameters()]

    def state_dict(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return dict(self.named_parameters())

    def load_state_dict(self, values: Mapping[str, Any], strict: bool = True) -> None:
        """Set the parameters' values by name, from arrays or PyTorch's ``state_dict``. Raises BuilderError for names that do not fit where strict."""
        own = self.state_dict()
        if strict and (set(own) != set(values)):
            missing, unknown = (", ".join(sorted(names)) or "none" for names in (set(own) - set(values), set(values) - set(own)))
            raise BuilderError("the values are not those of the module", why=f"missing: {missing}; unknown: {unknown}")
        for name in set(own) & set(values):
            value = values[name]
            own[name].data = getattr(value, "data", value) if isinstance(value, Parameter) else value

    def to(self, dtype: str | None = None) -> Module:
        """Make all parameters of this type."""
        for p in self.parameters():
            if dtype is not None:
                p.to(dtype)
        return self

    def export_tvm(self, spec: Mapping[str, Mapping[str, Any]]) -> tuple[IRModule, list[tuple[str, Parameter]]]:
        """A graph function for each method in ``spec``, which gives the method's arguments; and the parameters with their names.

        Each function takes its arguments, then the parameters in that order (its attribute ``num_input`` tells how many arguments there are).
        ``"$": {"param_mode": "packed"}`` among a method's arguments makes the parameters one tuple, ``none`` leaves them out. Raises BuilderError.
        """
        bb, params = BlockBuilder(), list(self.named_parameters())
        for name, arguments in spec.items():
            method = getattr(self, name, None)
            if method is None:
                raise BuilderError(f"{type(self).__name__} has no method {name}")
            _export(bb, name, method, arguments, params)
        return bb.finalize(), params

    export = export_tvm

    def jit(self, spec: Mapping[str, Mapping[str, Any]], device: Any = "cpu", pipeline: Any = None, out_format: str = "torch",
            debug: bool = False) -> Mapping[str, Any]:
        """The methods in ``spec``, as of ``export_tvm``, as native functions by name, with the values that the parameters have now; tensors of PyTorch
        give tensors of PyTorch, arrays arrays. Raises BuilderError for parameters without values, and what is no processor.

        ``pipeline`` is a pass that is run before. The other arguments are there for programs written for TVM.
        """
        if str(getattr(device, "device_type", device)).split(":")[0] not in ("cpu", "llvm"):
            raise BuilderError(f"there is no code for the device {device}", hint="programs run on the processor, cpu")
        if out_format != "torch":
            raise BuilderError(f"there is no out_format {out_format!r}", hint="functions give what they are given, tensors of PyTorch or arrays")
        mod, params = self.export_tvm(spec)
        missing = [name for name, p in params if p.data is None]
        if missing:
            raise BuilderError(f"{', '.join(missing)} have no values", hint="module.load_state_dict({...}), or parameter.data = array")
        values = [graph.Constant.of(p.data) for _, p in params]
        mod = mod.with_functions({name: _with_values(f, values) for name, f in mod.items() if name in spec})
        return above.api().build(pipeline(mod) if callable(pipeline) else mod)


def _with_values(func: graph.Function, values: Sequence[graph.Constant]) -> graph.Function:
    """The function with these values of its parameters, which it takes one by one, as a tuple, or not at all."""
    weights = func.params[int(func.attrs["num_input"]):]
    packed = len(weights) == 1 and isinstance(weights[0].sinfo, graph.TupleInfo)
    given = [graph.Tuple(tuple(values))] if packed else values
    return bind_params(func, dict(zip(weights, given, strict=True))) if weights else func


def _once(named: Iterator[tuple[str, Parameter]]) -> Iterator[tuple[str, Parameter]]:
    seen: set[int] = set()
    for name, p in named:
        if id(p) not in seen:
            seen.add(id(p))
            yield name, p


_MODES = ("plain", "packed", "none")
"""How a function takes the parameters of its module."""


def _export(bb: BlockBuilder, name: str, method: Any, arguments: Mapping[str, Any], params: Sequence[tuple[str, Parameter]]) -> None:
    symbols: dict[str, tir.Var] = {}
    dim = lambda d: symbols.setdefault(d, tir.Var(d, INT64, True)) if isinstance(d, str) else d
    mode = arguments.get("$", {}).get("param_mode", "plain")
    if mode not in _MODES:
        raise BuilderError(f"there is no param_mode {mode!r} for {name}", hint=f"it is one of {', '.join(_MODES)}")
    inputs = [graph.Var(n, _info(a, n, dim)) for n, a in arguments.items() if n != "$"]
    params = [] if mode == "none" else params
    weights = [graph.Var(n, graph.TensorInfo(tuple(map(dim, p._shape)), p.dtype)) for n, p in params]
    packed = graph.Var("packed_params", graph.TupleInfo(tuple(w.sinfo for w in weights))) if mode == "packed" else None
    with bb.function(name, [*inputs, *(weights if packed is None else [packed])], {"num_input": len(inputs)}):
        with bb.dataflow():
            if packed is not None:
                weights = [bb.emit(graph.TupleGetItem(packed, k), w.name) for k, w in enumerate(weights)]
            with _given(params, weights):
                result = method(*(_given_as(v, arguments[v.name]) for v in inputs))
            made = bb.emit_output(_value(result))
        bb.emit_func_output(made)


def _given_as(var: graph.Var, argument: Any) -> Any:
    """What a method gets for an argument: a tensor, a number as an expression, or an object of the specified type."""
    if isinstance(argument, specs.Object):
        return argument.object_type.of(var)
    if isinstance(var.sinfo, graph.PrimInfo):
        return var.sinfo.value
    return var.sinfo.values[0] if argument is int else Tensor(var)  # type: ignore[attr-defined]


def _info(argument: Any, name: str, dim: Any) -> graph.StructInfo:
    if isinstance(argument, specs.Tensor):
        return graph.TensorInfo(tuple(map(dim, argument.shape)), argument.dtype)
    if isinstance(argument, specs.Int):
        return graph.PrimInfo(INT64, dim(name))
    if argument is int:
        return graph.ShapeInfo((dim(name),))
    if isinstance(argument, specs.Object):
        return graph.ObjectInfo()
    if isinstance(argument, graph.StructInfo):
        return argument
    raise BuilderError(f"argument {name} is specified by {argument!r}", hint='nn.spec.Tensor(("n", 784), "float32") for a tensor, nn.spec.Int() for a number')


def _value(result: Any) -> graph.GraphExpr:
    if isinstance(result, Tensor | Object):
        return result.expr
    if isinstance(result, tuple | list):
        return graph.Tuple(tuple(map(_value, result)))
    raise BuilderError(f"a method that is exported returns tensors, not {type(result).__name__}")


@contextmanager
def _given(params: Sequence[tuple[str, Parameter]], weights: Sequence[graph.Var]) -> Iterator[None]:
    """Within, the parameters stand for these variables."""
    for (_, p), w in zip(params, weights, strict=True):
        p._expr = w
    try:
        yield
    finally:
        for _, p in params:
            p._expr = None


class ModuleList(Module):
    """Modules in order; called, one after another."""

    def __init__(self, modules: Sequence[Module] = ()) -> None:
        self.modules = list(modules)

    def _items(self) -> Iterator[tuple[str, Any]]:
        return ((str(k), m) for k, m in enumerate(self.modules))

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def __getitem__(self, index: int) -> Module:
        return self.modules[index]

    def __len__(self) -> int:
        return len(self.modules)

    def append(self, module: Module) -> None:
        """One more at the end."""
        self.modules.append(module)

    def forward(self, x: Any) -> Any:
        """One module after another."""
        for m in self.modules:
            x = m(x)
        return x


class Sequential(ModuleList):
    """``Sequential(Linear(4, 8), ReLU())``"""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self.modules = dict(modules or {})

    def _items(self) -> Iterator[tuple[str, Any]]:
        yield from self.modules.items()

    def __getitem__(self, name: str) -> Module:
        return self.modules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)


__all__ = ["Module", "ModuleDict", "ModuleList", "Object", "Parameter", "Sequential", "Tensor"]
