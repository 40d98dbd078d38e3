# SPDX-License-Identifier: Apache-2.0
"""The ``torch.compile`` backend, and any PyTorch module as a function of arrays as suites of models run it."""
