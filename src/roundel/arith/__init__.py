# SPDX-License-Identifier: Apache-2.0
"""Exact integers: simplification, bounds, proofs, integer sets, affine iteration maps, regions of buffers."""

from .analyzer import Analyzer
from .block_access import block_access, domain_touched
from .bounds import Bounds
from .closed_form import numpy_function
from .detect_common_subexpr import detect_common_subexpr
from .effects import has_effect, reads_memory
from .index_map import (
    compose,
    estimate_region_lower,
    inverse_affine_iter_map,
    inverse_index_map,
    is_identity,
    iter_map_simplify,
    map_shape,
)
from .inequalities import deskew_ranges, solve_linear_inequalities
from .int_set import Interval, union_lower_bound
from .iter_map import IterMap, IterMark, IterSplit, IterSum, detect_iter_map, sum_expr
from .iter_sum import normalize_to_iter_sum
from .linear_equation import deduce_bound, detect_clip_bound, detect_linear_equation
from .region import (
    between,
    covers,
    disjoint,
    end,
    estimate_region,
    intersect,
    is_point,
    relax_range,
    same_region,
    union,
)
from .solve import IntConstraints, IntConstraintsTransform, smith_normal_form, solve_linear_equations
from .subspace import Division, SubspaceDivision, subspace_divide

__all__ = [
    "Analyzer",
    "Bounds",
    "Division",
    "IntConstraints",
    "IntConstraintsTransform",
    "Interval",
    "IterMap",
    "IterMark",
    "IterSplit",
    "IterSum",
    "SubspaceDivision",
    "between",
    "block_access",
    "compose",
    "covers",
    "deduce_bound",
    "deskew_ranges",
    "detect_clip_bound",
    "detect_common_subexpr",
    "detect_iter_map",
    "detect_linear_equation",
    "disjoint",
    "domain_touched",
    "end",
    "estimate_region",
    "estimate_region_lower",
    "has_effect",
    "intersect",
    "inverse_affine_iter_map",
    "inverse_index_map",
    "is_identity",
    "is_point",
    "iter_map_simplify",
    "map_shape",
    "normalize_to_iter_sum",
    "numpy_function",
    "reads_memory",
    "relax_range",
    "same_region",
    "smith_normal_form",
    "solve_linear_equations",
    "solve_linear_inequalities",
    "subspace_divide",
    "sum_expr",
    "union",
    "union_lower_bound",
]
