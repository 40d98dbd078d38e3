# SPDX-License-Identifier: Apache-2.0
"""The engines that are compared. Each is a function from a Workload to its *variants*: ways to set it up, of which the fastest counts.

A variant is a Session: a call without arguments (inputs are in the engine's own tensors already) and what turns its result into
an array. Whoever is not installed raises ModuleNotFoundError and is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Workload:
    """What to run: an ONNX file, inputs by name; ``module`` makes the same as a PyTorch module (None: torch engines are skipped)."""

    onnx: Path
    inputs: Mapping[str, np.ndarray]
    threads: int
    module: Callable[[], Any] | None = None
    dynamic: bool = False


@dataclass(frozen=True)
class Session:
    """``call()`` runs once; ``array(result)`` is its first output."""

    call: Callable[[], Any]
    array: Callable[[Any], np.ndarray]


Variants = dict[str, Callable[[], Session]]


def pin_threads(threads: int) -> None:
    """Before any engine is imported: the pools of OpenMP and MKL."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS"):
        os.environ[name] = str(threads)


def roundel(work: Workload, weights: str | None = None) -> Variants:
    """``rd.compile`` and nothing else: no tuning, no settings but the number of threads; ``weights``: the type they are stored in."""
    import roundel as rd

    def session() -> Session:
        model = rd.compile(str(work.onnx), threads=work.threads, weights=weights)
        inputs = list(work.inputs.values())
        return Session(lambda: model(*inputs), lambda out: np.asarray(out[0] if isinstance(out, list | tuple) else out))

    return {"": session}


def ort(work: Workload) -> Variants:
    """ONNX Runtime, all optimisations, inputs and outputs bound; with several threads, workers that spin and such that do not."""
    import onnxruntime

    def session(settings: Mapping[str, str]) -> Session:
        wanted = onnxruntime.SessionOptions()
        wanted.intra_op_num_threads, wanted.inter_op_num_threads = work.threads, 1
        wanted.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        wanted.log_severity_level = 3
        for key, value in settings.items():
            wanted.add_session_config_entry(key, value)
        found = onnxruntime.InferenceSession(str(work.onnx), wanted, providers=["CPUExecutionProvider"])
        binding = found.io_binding()
        for k in found.get_inputs():
            binding.bind_ortvalue_input(k.name, onnxruntime.OrtValue.ortvalue_from_numpy(work.inputs[k.name]))
        for k in found.get_outputs():
            binding.bind_output(k.name)
        return Session(lambda: found.run_with_iobinding(binding), lambda _: binding.copy_outputs_to_cpu()[0])

    spinning = {"session.force_spinning_stop": "1"}  # workers spin during a run, not into the next engine's turn
    variants: Variants = {"spinning" if work.threads > 1 else "": lambda: session(spinning)}
    if work.threads > 1:
        variants["waiting"] = lambda: session({"session.intra_op.allow_spinning": "0"})
    return variants


def openvino(work: Workload) -> Variants:
    """OpenVINO's CPU plugin, latency hint, one stream, float32."""
    import openvino as ov

    def session() -> Session:
        core = ov.Core()
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": work.threads, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": "1"}
        request = core.compile_model(core.read_model(str(work.onnx)), "CPU", settings).create_infer_request()
        tensors = {name: ov.Tensor(value) for name, value in work.inputs.items()}
        for name, tensor in tensors.items():
            request.set_tensor(name, tensor)
        return Session(request.infer, lambda _: request.get_output_tensor(0).data)

    return {"": session}


def eager(work: Workload) -> Variants:
    """PyTorch as it is; images also in channels-last memory."""
    return {"": lambda: _torch(work, lambda m: m)} | ({"channels_last": lambda: _torch(work, lambda m: m, True)} if _is_images(work) else {})


def inductor(work: Workload) -> Variants:
    """``torch.compile`` with max-autotune and frozen weights (needs a C++ compiler)."""

    def compiled(module: Any) -> Any:
        import torch
        import torch._inductor.config as config

        torch._dynamo.reset()
        config.freezing = True
        return torch.compile(module, mode="max-autotune", dynamic=work.dynamic or None)

    return {"": lambda: _torch(work, compiled)}


def _is_images(work: Workload) -> bool:
    return any(v.ndim == 4 for v in work.inputs.values())


def _torch(work: Workload, prepare: Callable[[Any], Any], channels_last: bool = False) -> Session:
    import torch

    if work.module is None:
        raise ModuleNotFoundError("this workload has no PyTorch form")
    torch.set_num_threads(work.threads)
    module, inputs = work.module(), [torch.from_numpy(v) for v in work.inputs.values()]
    if channels_last:
        module = module.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) if x.ndim == 4 else x for x in inputs]
    module = prepare(module)

    def call() -> Any:
        with torch.no_grad():
            return module(*inputs)

    return Session(call, lambda out: out.numpy())


def tvm(work: Workload) -> Variants:
    """Apache TVM, untuned, for this processor and for any of its kind: without schedules of their own, wider vectors may be slower."""
    import llvmlite.binding as llvm
    import onnx
    import tvm as tvm_
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    def session(cpu: str) -> Session:
        module = from_onnx(onnx.load(str(work.onnx)), keep_params_in_input=False)
        target = tvm_.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": work.threads})
        machine = relax.VirtualMachine(tvm_.compile(module, target=target), tvm_.cpu())
        inputs, main = [tvm_.runtime.tensor(v) for v in work.inputs.values()], machine["main"]
        return Session(lambda: main(*inputs), lambda out: (out if hasattr(out, "numpy") else out[0]).numpy())

    return {cpu: partial(session, cpu) for cpu in (llvm.get_host_cpu_name(), "generic")}


ENGINES: dict[str, Callable[[Workload], Variants]] = {
    "roundel": roundel, "roundel-f16": partial(roundel, weights="float16"), "roundel-bf16": partial(roundel, weights="bfloat16"),
    "ort": ort, "openvino": openvino, "inductor": inductor, "eager": eager, "tvm": tvm,
}
OURS = "roundel"
