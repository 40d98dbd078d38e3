# SPDX-License-Identifier: Apache-2.0
"""C texts beside each other: which functions a text defines, and that those of one name in two texts are two functions."""

import numpy as np
import pytest

import roundel as rd
from roundel import backends
from roundel.backends.sources import defined, told_apart
from roundel.relax.dpl import is_op, wildcard
from roundel.script import ir as I
from roundel.script import relax as R

TEXT = r"""
#include <math.h>
#define SQUARE(x) ((x) * (x)) /* not( a function ) { */
static inline float half(float x) { return x / 2; }
// comment(x) {
typedef struct { float (*apply)(float); } table;
const char *name(void) { return "text(x) {"; }
int32_t
split_over(const float *x,
           float (*f)(float), int64_t n)
{
  for (int64_t i = 0; i < n; i++) { if (x[i] > 0) { f(x[i]); } else if (x[i] < 0) { half(x[i]); } }
  while (n) { n--; }
  switch (n) { default: return sqrtf(2) > 1; }
}
float declared(float);
"""


def test_definitions_are_found_and_nothing_else():
    assert defined(TEXT) == ["half", "name", "split_over"]


def test_names_are_those_of_the_text():
    (one, names), (other, others) = told_apart(TEXT), told_apart(TEXT + "\n")
    assert set(names) == set(others) and not set(names.values()) & set(others.values())
    assert one.endswith(TEXT) and told_apart(TEXT)[0] == one != other


@I.ir_module
class Powers:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            a = R.nn.leakyrelu(x, alpha=0.5)
            b = R.exp(a)
            c = R.nn.leakyrelu(b, alpha=0.25)
            d = R.nn.leakyrelu(R.negative(c), alpha=0.125)
            R.output(d)
        return d


@pytest.mark.parametrize("guarded", [False, True])
def test_a_text_for_each_kernel(tmp_path, guarded):
    """As code generators write them: functions of the same names, with other numbers in them."""
    def implement(c):
        rows, columns = c.result.shape
        source = f"""#include <stdint.h>
float slope(void) {{ return {float(c.attrs("nn.leakyrelu")["alpha"])}f; }}
int32_t can(int64_t n) {{ return slope() > 0.2f; }}
void leaky(const float *x, float *y, int64_t n) {{ for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : slope() * x[i]; }}"""
        return backends.native(c, "leaky", rows * columns, source=source, guard=("can", rows) if guarded else ())

    backend = backends.register(backends.Backend("leaks", [("leaks.leaky", is_op("relax.nn.leakyrelu")(wildcard()))], implement))
    try:
        model = rd.compile(Powers, choices={"*": "leaks"}, verify=True)
        x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
        for m in (model, rd.load(model.save(tmp_path / "model.so"))):
            np.testing.assert_allclose(m(x), rd.interpret(Powers)["main"](x), rtol=1e-6)
    finally:
        backends.unregister(backend)
