# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.training``: `roundel.training`."""

from __future__ import annotations

from typing import Any

from .....training import loss, optimizer
from .....training import setup as _setup
from .....training.trainer import Trainer as _Trainer
from ...rooms import missing
from ...runtime import tensor
from ...transform import Pass
from ..transform import LegalizeOps
from . import utils
from .utils import AppendLoss


def SetupTrainer(loss: loss.Loss, optimizer: optimizer.Optimizer, loss_args: Any, legalize: bool = True) -> Pass:
    """The module that a step of training needs, of one with a function ``backbone``: `roundel.training.setup`"""

    def run(mod: Any) -> Any:
        mod = _setup(mod, loss, optimizer, loss_args)
        return LegalizeOps()(mod) if legalize else mod

    return Pass(run, name="SetupTrainer")


class Trainer(_Trainer):
    """Parameters and states of a training and the step that moves them: `roundel.training.Trainer`"""

    def __init__(self, train_mod: Any, vm: Any, device: Any = None, zero_init_param_state: bool = True) -> None:
        super().__init__(train_mod, vm, zero_init_param_state)
        self.vm, self.device = vm, device

    xaiver_uniform_init_params = _Trainer.xavier_uniform_init_params  # as TVM spells it

    def export_params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {name: tensor(value) for name, value in super().export_params().items()}

    def export_states(self) -> dict[str, Any]:
        """The states of the model by name."""
        return {name: tensor(value) for name, value in super().export_states().items()}

    def profile_adjoint(self, input_instances: Any, targets: Any) -> Any:
        """Where the time of a step's gradients goes, kernel by kernel."""
        several = lambda given: given if isinstance(given, list) else [given]
        return self.vm.profile("backbone_loss_adjoint", *self.arguments(several(input_instances), several(targets)))


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.relax.training.{name}", name)


__all__ = ["AppendLoss", "SetupTrainer", "Trainer", "loss", "optimizer", "utils"]
