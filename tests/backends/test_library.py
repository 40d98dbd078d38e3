# SPDX-License-Identifier: Apache-2.0
"""What is said of a shared library that is described wrongly, is not there, or has not all functions."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roundel as rd
from roundel import backends
from roundel.ir.errors import OptionError
from roundel.relax.dpl import is_op, wildcard
from roundel.runtime import toolchain
from roundel.script import ir as I
from roundel.script import relax as R

DECLARED = "void lib_cut(const float *, float *, int);"
CALLS = "void kit_cut(const float *x, float *y, int64_t n) { lib_cut(x, y, (int)n); }"


@pytest.fixture
def built(tmp_path):
    """A library that cuts numbers below 0."""
    (tmp_path / "cut.c").write_text("void lib_cut(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0; }")
    toolchain.run([*toolchain.compiler(), "-shared", "-fPIC", "-O1", "-o", tmp_path / "libcut.so", tmp_path / "cut.c"])
    return tmp_path / "libcut.so"


@I.ir_module
class Relu:
    @R.function
    def main(x: R.Tensor((2, 4), "float32")):
        with R.dataflow():
            act = R.nn.relu(x)
            R.output(act)
        return act


X = np.linspace(-4, 4, 8, dtype=np.float32).reshape(2, 4)


@pytest.fixture
def compiled():
    """The model with its operator computed by a kernel."""
    def compiled(how):
        backend = backends.register(backends.Backend("kit", [("kit.relu", is_op("relax.nn.relu")(wildcard()))], how))
        try:
            return rd.compile(Relu, choices={"act": "kit"})
        finally:
            backends.unregister(backend)

    return compiled


@pytest.mark.parametrize("given", [str, lambda file: file, lambda file: [file], lambda file: ("/nowhere/lib.so", str(file)), lambda file: lambda: [str(file)],
                                   lambda file: lambda: str(file)])
def test_files_are_a_path_or_several_or_a_function_that_gives_them(built, compiled, given):
    library = backends.Library("cut", DECLARED, CALLS, given(built))
    assert not library.missing
    np.testing.assert_array_equal(compiled(lambda c: backends.native(c, "kit_cut", 8, library=library))(X), np.maximum(X, 0))


@pytest.mark.parametrize("files", [3, [3], lambda: 1 / 0, None, lambda: None])
def test_what_are_no_files(files):
    with pytest.raises(OptionError, match="library cut: .*files"):
        backends.Library("cut", DECLARED, CALLS, files).missing


@pytest.mark.parametrize(("name", "declared", "words"), [
    ("my bad-lib", DECLARED, "cannot be called"), ("", DECLARED, "cannot be called"), ("cut", "/* none(x); */", "no function is declared"),
    ("cut", DECLARED + "\nint other(int)", r"no end\n'int other\(int\)'"), ("cut", "int other(int) // ;", "no end"),
])
def test_what_is_no_library(name, declared, words):
    with pytest.raises(OptionError, match=words):
        backends.Library(name, declared, CALLS, "libcut.so")


def test_functions_in_comments_are_not_looked_up():
    library = backends.Library("cut", f"/* computes(x); */ {DECLARED} // wrong(it);", CALLS, "libcut.so")
    assert library.functions == ["lib_cut"]


def test_a_library_without_a_function_is_not_said_to_be_away(built, compiled, tmp_path):
    lacking = backends.Library("cut", DECLARED + " int lib_more(int);", CALLS, ["/nowhere/lib.so", built])
    assert lacking.missing == f"the library cut has no function lib_more ({built})"
    away = backends.Library("cut", DECLARED, CALLS, ["/nowhere/lib.so", "/nowhere/too.so"])
    assert away.missing == "the library cut is not on this machine (/nowhere/lib.so, /nowhere/too.so)"
    for library, said in ((lacking, f"has no function lib_more (/nowhere/lib.so, {built})"), (away, "is not found (/nowhere/lib.so, /nowhere/too.so)")):
        file = compiled(lambda c, library=library: backends.native(c, "kit_cut", 8, library=library)).save(tmp_path / "model.so")
        run = f"import numpy as np, roundel as rd; print(rd.load({str(file)!r})(np.ones((2, 4), 'f')).sum())"
        done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
        assert done.stdout == "8.0\n" and f"roundel: the library cut {said}: generated code runs instead of it" in done.stderr


@pytest.mark.parametrize(("declared", "calls", "setup", "words"), [
    ("int broken(in t); " + DECLARED, CALLS, "", "the declarations of the library cut:1"),
    (DECLARED, "\n\nint broken(in t);" + CALLS, "", "the source of the library cut:3"),
    (DECLARED, CALLS, "nothing here;", "the setup of the library cut:1"),
])
def test_an_error_in_its_texts_says_in_which(built, compiled, declared, calls, setup, words):
    with pytest.raises(rd.RoundelError, match=words):
        compiled(lambda c: backends.native(c, "kit_cut", 8, library=backends.Library("cut", declared, calls, str(Path(built)), setup=setup)))


def test_a_function_that_is_nowhere_is_named(compiled):
    source = "void nowhere(float *);\nvoid cut(const float *x, float *y) { nowhere(y); }"
    with pytest.raises(rd.RoundelError, match="no object and no loaded library defines nowhere\nhint"):
        compiled(lambda c: backends.native(c, "cut", source=source))
    with pytest.raises(rd.RoundelError, match="no object and no loaded library defines cut_of_nobody\nhint"):
        compiled(lambda c: backends.native(c, "cut_of_nobody"))
