# SPDX-License-Identifier: Apache-2.0
# What type checkers and editors see of the package: everything that __init__.py imports on first use.

from . import api as api
from . import arith as arith
from . import backends as backends
from . import builder as builder
from . import cli as cli
from . import codegen as codegen
from . import compat as compat
from . import driver as driver
from . import embed as embed
from . import frontend as frontend
from . import graph as graph
from . import host as host
from . import interp as interp
from . import intrinsics as intrinsics
from . import ir as ir
from . import lower as lower
from . import ops as ops
from . import pages as pages
from . import passes as passes
from . import quantizer as quantizer
from . import relax as relax
from . import reports as reports
from . import runtime as runtime
from . import schedule as schedule
from . import script as script
from . import strategy as strategy
from . import target as target
from . import te as te
from . import tir as tir
from .api import auto_schedule as auto_schedule
from .api import build as build
from .api import compile as compile  # noqa: A004
from .api import import_model as import_model
from .api import import_relay as import_relay
from .api import interpret as interpret
from .api import load as load
from .api import quantize as quantize
from .api import tune as tune
from .builder import BlockBuilder as BlockBuilder
from .frontend import onnx as onnx
from .frontend import relay as relay
from .frontend import torch as torch
from .ir.errors import RoundelError as RoundelError
from .ir.module import IRModule as IRModule
from .quantizer import Quantized as Quantized
from .reports.explained import Explained as Explained
from .reports.explained import explain as explain
from .reports.report import report as report
from .runtime.executable import Executable as Executable
from .runtime.model import Model as Model
from .runtime.registry import get_func as get_func
from .runtime.registry import register_func as register_func
from .schedule import Schedule as Schedule
from .target import Target as Target

__version__: str
__all__: list[str]
