# SPDX-License-Identifier: Apache-2.0
"""Backends outside of Roundel, each by the public interface alone and of less than 150 lines: functions of SciPy, and a code generator that writes C for
chains of elementwise operators; and how a package makes one known."""

import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import roundel as rd
from roundel import backends
from roundel.relax.dpl import is_op, wildcard
from roundel.script import ir as I
from roundel.script import relax as R

# --- functions of SciPy


def scipy_backend():
    """Functions that write into their last argument, one for each operator; their attributes and the types of tensors are looked at first."""
    scipy = pytest.importorskip("scipy.special")
    signal, version = pytest.importorskip("scipy.signal"), pytest.importorskip("scipy").__version__

    def softmax(axis):
        return lambda x, out: np.copyto(out, scipy.softmax(x, axis=axis))

    def gelu(x, out):
        np.multiply(x, scipy.ndtr(x), out=out, casting="same_kind")

    def conv1d(x, w, out):  # one image of one channel
        out[0, 0] = signal.correlate(x[0, 0], w[0, 0], mode="valid", method="fft")

    def implement(c):
        if any(str(i.dtype) not in ("float32", "float64") for i in (*c.operands, c.result)):
            return "SciPy would compute in another type"
        (name,) = c.calls
        if name == "nn.softmax":
            return backends.python(softmax(c.attrs(name)["axis"]))
        if name == "nn.gelu":
            return backends.python(gelu)
        sizes = [tuple(map(str, i.shape[:2])) for i in c.operands]
        if sizes != [("1", "1"), ("1", "1")] or np.any(c.attrs(name)["padding"]) or c.attrs(name)["strides"] != (1,):
            return "it knows one channel of one signal, without padding"
        return backends.python(conv1d)

    names = ("nn.softmax", "nn.gelu")
    patterns = [(f"scipy.{n}", is_op(f"relax.{n}")(wildcard())) for n in names]
    return backends.Backend("scipy", [*patterns, ("scipy.conv1d", is_op("relax.nn.conv1d")(wildcard(), wildcard()))], implement, version)


# --- a code generator


def codegen_backend():
    """A C function for each different chain of up to three elementwise operators, of tensors of one shape: an expression for each value, in a loop."""
    unary = {"negative": "-{0}", "abs": "fabsf({0})", "sqrt": "sqrtf({0})", "exp": "expf({0})", "nn.relu": "({0} > 0 ? {0} : 0)"}
    binary = {"add": "({0} + {1})", "subtract": "({0} - {1})", "multiply": "({0} * {1})", "maximum": "fmaxf({0}, {1})"}

    def implement(c):
        shape = c.result.shape
        if any(i.shape != shape or str(i.dtype) != "float32" for i in (*c.operands, c.result)):
            return "it knows float32 tensors of one shape"
        texts = {p: f"p{k}[i]" for k, p in enumerate(c.function.params)}
        lines = []
        for b in c.function.body.bindings:
            form = {**unary, **binary}[b.value.op.name]
            lines.append(f"const float v{len(lines)} = {form.format(*(texts[a] for a in b.value.args))};")
            texts[b.var] = f"v{len(lines) - 1}"
        symbol = "chain_" + re.sub(r"\W", "_", "_".join(b.value.op.name for b in c.function.body.bindings))
        params = "".join(f"const float *p{k}, " for k in range(len(c.operands)))
        passed = "".join(f"p{k}, " for k in range(len(c.operands)))
        source = f"""#include <math.h>
#include <stdint.h>
static void {symbol}_of({params}float *restrict y, int64_t first, int64_t count) {{
  for (int64_t i = first; i < first + count; i++) {{ {' '.join(lines)} y[i] = {texts[c.function.body.body]}; }}
}}
void {symbol}_{len(lines)}({params}float *y, int64_t first, int64_t count) {{ {symbol}_of({passed}y, first, count); }}
"""
        count = 1
        for d in shape:
            count = count * d
        return backends.native(c, f"{symbol}_{len(lines)}", source=source, parallel=count, ranges=True)

    def one(inner):
        either = None
        for name in (*unary, *binary):
            made = is_op(f"relax.{name}")(inner) if name in unary else is_op(f"relax.{name}")(inner, wildcard())
            either = made if either is None else either | made
        return either

    chains = [one(wildcard())]
    for _ in range(2):
        chains.append(one(chains[-1]))
    return backends.Backend("codegen", [("codegen.chain", chain) for chain in reversed(chains)], implement, "1")


# --- how they fare

rng = np.random.default_rng(0)


def values(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("kit", [scipy_backend, codegen_backend])
def test_each_is_less_than_150_lines_of_the_public_interface(kit):
    text = inspect.getsource(kit)
    assert len(text.splitlines()) < 150 and not re.search(r"roundel\.(backends\.\w+\.|ir|driver)", text)


@I.ir_module
class Signals:
    @R.function
    def main(x: R.Tensor(("n", 12), "float32"), s: R.Tensor((1, 1, 40), "float32"), w: R.Tensor((1, 1, 5), "float32")):
        with R.dataflow():
            a = R.nn.gelu(x)
            b = R.nn.softmax(a, axis=1)
            c = R.nn.conv1d(s, w)
            R.output(b, c)
        return b, c


@pytest.mark.parametrize("threads", [1, 2])
def test_functions_of_scipy(registered, threads):
    registered(scipy_backend())
    model = rd.compile(Signals, choices={"*": "scipy"}, threads=threads, verify=True)
    for n in (1, 7):
        inputs = values(n, 12), values(1, 1, 40), values(1, 1, 5)
        for got, want in zip(model(*inputs), rd.interpret(Signals)["main"](*inputs), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@I.ir_module
class Attention:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            turned = R.permute_dims(x)
            scores = R.matmul(x, turned)
            p = R.nn.softmax(scores, axis=-1)
            out = R.matmul(p, x)
            R.output(out)
        return out


def test_operands_come_in_the_order_that_a_function_wants(registered):
    """A value that is used twice is one operand."""
    def attention(keys, queries, values, out):
        exps = np.exp(queries @ keys - (queries @ keys).max(-1, keepdims=True))
        out[...] = exps / exps.sum(-1, keepdims=True) @ values

    def implement(c):
        first, last = (b.value for b in c.function.body.bindings if b.value.op.name == "matmul")
        queries, keys, given = (c.position(v) for v in (*first.args, last.args[1]))
        assert len(c.operands) == 2 and queries == given
        return backends.python(attention, operands=(keys, queries, given))

    pattern = is_op("relax.matmul")(is_op("relax.nn.softmax")(is_op("relax.matmul")(wildcard(), wildcard())), wildcard())
    registered(backends.Backend("attention", [("attention.all", pattern)], implement))
    x = values(6, 4)
    np.testing.assert_allclose(rd.compile(Attention, choices={"*": "attention"}, verify=True)(x), rd.interpret(Attention)["main"](x), rtol=1e-4, atol=1e-5)


def test_an_exception_of_a_function_is_the_runs_error(registered):
    def fails(x, out):
        raise ValueError("no licence")

    registered(backends.Backend("fails", [("fails.gelu", is_op("relax.nn.gelu")(wildcard()))], lambda c: backends.python(fails)))
    model = rd.compile(Signals, choices={"a": "fails"})
    with pytest.raises(Exception, match="no licence"):
        model(values(2, 12), values(1, 1, 40), values(1, 1, 5))


@I.ir_module
class Chains:
    @R.function
    def main(x: R.Tensor(("n", 5), "float32"), y: R.Tensor(("n", 5), "float32")):
        with R.dataflow():
            a = R.subtract(x, y)
            b = R.abs(a)
            c = R.sqrt(b)
            total = R.sum(c)
            d = R.multiply(c, total)
            e = R.maximum(d, y)
            f = R.nn.relu(R.exp(R.negative(e)))
            R.output(f)
        return f


@pytest.mark.parametrize("threads", [1, 2])
def test_a_code_generator(registered, threads):
    registered(codegen_backend())
    model = rd.compile(Chains, choices={"*": "codegen"}, threads=threads, verify=True, profile=True)
    for n in (1, 300):
        inputs = values(n, 5), values(n, 5)
        np.testing.assert_allclose(model(*inputs), rd.interpret(Chains)["main"](*inputs), rtol=1e-4, atol=1e-6)
    kernels = model.executable["main"].profile()
    assert sum("codegen_chain" in name for name in kernels) == 3, "three operators, one that stands before a broadcast product, three"


def test_a_node_of_which_no_pattern_makes_a_part_is_named(registered):
    registered(codegen_backend())
    with pytest.raises(rd.RoundelError, match=r"node 'total'.*codegen cannot be had(.|\n)*none of its patterns matches there \(codegen.chain\)"):
        rd.compile(Chains, choices={"total": "codegen"})


@pytest.mark.parametrize("pattern", ["*", "to*"])
def test_a_pattern_of_names_where_no_part_begins_is_named_too(registered, pattern):
    registered(backends.Backend("mine", [("mine.tan", is_op("relax.tan")(wildcard()))], lambda c: pytest.fail("it is not asked")))
    with pytest.raises(rd.RoundelError, match=r"mine cannot be had(.|\n)*none of its patterns matches there \(mine.tan\)"):
        rd.compile(Chains, choices={pattern: "mine"})


def test_where_there_is_no_backend_of_a_name_those_there_are_are_named(registered):
    registered(codegen_backend())
    with pytest.raises(rd.RoundelError, match=r"there is no algorithm 'yours'(.|\n)*the backends are codegen, openblas, onednn"):
        rd.compile(Chains, choices={"*": "yours"})


def test_a_choice_and_libraries_off_contradict_each_other(registered):
    registered(codegen_backend())
    with pytest.raises(rd.RoundelError, match="codegen is asked for, and libraries='off' leaves generated code alone"):
        rd.compile(Chains, choices={"a": "codegen"}, libraries="off")


def test_a_part_with_a_tuple_for_a_result_says_why(registered):
    registered(backends.Backend("cut", [("cut.split", is_op("relax.split")(wildcard()))], lambda c: pytest.fail("it is not asked")))

    @I.ir_module
    class Cut:
        @R.function
        def main(x: R.Tensor((4, 6), "float32")):
            with R.dataflow():
                parts = R.split(x, 2, axis=1)
                out = R.add(parts[0], parts[1])
                R.output(out)
            return out

    with pytest.raises(rd.RoundelError, match="its result is no tensor"):
        rd.compile(Cut, choices={"parts": "cut"})


@I.ir_module
class Three:
    @R.function
    def main(x: R.Tensor((4, 6), "float32")):
        with R.dataflow():
            a = R.abs(x)
            b = R.exp(a)
            c = R.tanh(b)
            d = R.multiply(c, c)
            R.output(d)
        return d


def test_two_backends_asked_for_parts_that_share_an_operator_are_named(registered):
    registered(backends.Backend("pair", [("pair.exp", is_op("relax.exp")(is_op("relax.abs")(wildcard())))], lambda c: backends.python(lambda x, out: None)))
    registered(backends.Backend("last", [("last.tanh", is_op("relax.tanh")(is_op("relax.exp")(wildcard())))], lambda c: backends.python(lambda x, out: None)))

    with pytest.raises(rd.RoundelError, match=r"pair cannot be had(.|\n)*last at '\w+' takes a part of it"):
        rd.compile(Three, choices={"b": "pair", "c": "last"})


@pytest.mark.parametrize("asked", [{"b": "pair"}, {"b": "pair", "*": "last"}, {"b": "pair", "c": "generated"}])
def test_what_is_asked_for_by_name_goes_before_what_is_cheap_or_asked_for_by_a_pattern(registered, asked):
    def pair(x, out):
        np.exp(np.abs(x), out=out)

    def square(x, out):
        np.multiply(x, x, out=out)

    def never(x, out):
        raise AssertionError("it is not asked for by name")

    registered(backends.Backend("pair", [("pair.exp", is_op("relax.exp")(is_op("relax.abs")(wildcard())))], lambda c: backends.python(pair)))
    patterns = [("last.tanh", is_op("relax.tanh")(is_op("relax.exp")(wildcard()))), ("last.mul", is_op("relax.multiply")(wildcard(), wildcard()))]
    registered(backends.Backend("last", patterns, lambda c: backends.python(never if len(c.calls) == 2 else square, cycles=1.0)))
    x = values(4, 6)
    np.testing.assert_allclose(rd.compile(Three, choices=asked, libraries="pair,last")(x), np.square(np.tanh(np.exp(np.abs(x)))), rtol=1e-5)


# --- packages


def page():
    """The package of the page on one's own library: its file and its pyproject.toml."""
    text = (Path(__file__).parents[2] / "docs" / "own-library.md").read_text()
    return re.search(r"MYKIT = '''\n(.*?)'''", text, re.S).group(1), re.search(r"```toml\n(.*?)```", text, re.S).group(1)


def install(site, module, project):
    """What installing does with a package of one file: the file, and beside it the entry points of its pyproject.toml."""
    found = tomllib.loads(project)["project"]
    info = site / f"{found['name']}-{found['version']}.dist-info"
    info.mkdir(parents=True)
    (site / f"{found['name']}.py").write_text(module)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {found['name']}\nVersion: {found['version']}\n")
    groups = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in found["entry-points"].items()]
    (info / "entry_points.txt").write_text("\n".join(groups))


RUN = """
import numpy as np, roundel as rd, sys
from roundel import backends
from roundel.script import ir as I, relax as R
assert "mykit" in backends.available() and "mykit" not in sys.modules
W, B = np.ones((4, 3), np.float32), np.ones(3, np.float32)
@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            product = R.matmul(x, R.const(W))
            out = R.add(product, R.const(B))
            R.output(out)
        return out
model = rd.compile(Model, choices={"product": "mykit"})
print(model(np.ones((2, 4), np.float32)).tolist())
"""


def in_process(site, folder):
    (folder / "run.py").write_text(RUN)  # scripts are read from their file
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run([sys.executable, "run.py"], cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})


def test_a_package_is_found_by_its_entry_point(tmp_path):
    module, project = page()
    install(tmp_path / "site", module, project)
    missing = in_process(tmp_path / "site", tmp_path)
    assert missing.returncode != 0 and "the library tinynn is not on this machine" in missing.stderr
    text = re.search(r"```c\n(.*?)```", (Path(__file__).parents[2] / "docs" / "own-library.md").read_text(), re.S).group(1)
    (tmp_path / "tinynn.c").write_text(text)
    from roundel.runtime import toolchain

    toolchain.run([*toolchain.compiler(), "-O2", "-shared", "-fPIC", "-o", tmp_path / "libtinynn.so", tmp_path / "tinynn.c"])
    done = in_process(tmp_path / "site", tmp_path)
    assert done.returncode == 0 and done.stdout.strip() == "[[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]", done.stderr


@pytest.mark.parametrize(("module", "said"), [("BACKEND = 3", "is a int"), ("import nothing_of_this_name", "nothing_of_this_name"),
                                              ("", "BACKEND")])
def test_a_package_that_is_broken_is_named(tmp_path, module, said):
    install(tmp_path / "site", module, page()[1])
    done = in_process(tmp_path / "site", tmp_path)
    last = done.stderr.strip().splitlines()
    assert done.returncode != 0 and "mykit" in done.stderr and said in done.stderr and any("RoundelError" in x or "OptionError" in x for x in last)
