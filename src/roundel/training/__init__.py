# SPDX-License-Identifier: Apache-2.0
"""Training: losses and optimizers as graph functions, the module that has all that a step of training needs, and the loop's state.

    mod = setup(model, MSELoss(), SGD(0.1), [prediction, target])
    trainer = Trainer(mod, rd.build(mod))
    loss = trainer.update(x, y)
"""

from .loss import CategoricalCrossEntropyLoss, CrossEntropyLoss, L1Loss, Loss, MSELoss
from .optimizer import SGD, Adam, MomentumSGD, Optimizer
from .setup import append_loss, normalizes_by_batches, setup
from .trainer import Trainer

__all__ = ["SGD", "Adam", "CategoricalCrossEntropyLoss", "CrossEntropyLoss", "L1Loss", "Loss", "MSELoss", "MomentumSGD", "Optimizer", "Trainer",
           "append_loss", "normalizes_by_batches", "setup"]
