# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.backend.contrib``: what accelerators of TVM's can be given. Parts are found and split off; a code generator is a
`roundel.backends.Backend` of the patterns' prefix."""
