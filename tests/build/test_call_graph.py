# SPDX-License-Identifier: Apache-2.0
"""The deepest chain of calls, of what GCC writes down and of what Clang's objects show."""

import subprocess

import pytest

from roundel.build.bare_metal import compiler_of
from roundel.build.call_graph import CallGraph, deepest_stack

_BOARDS = ("rv64gcv-bare", "rv32imac", "cortex-m3", "cortex-m4", "cortex-m55")
_SOURCE = """
#define APART __attribute__((noinline))
int outside(int);
typedef float lanes __attribute__((vector_size(16)));
APART static int leaf(int n) { volatile char room[400]; room[n] = 1; return room[n]; }
APART static int task(int n) { volatile char room[800]; room[n] = 1; return outside(n) + room[n]; }
APART static int both(int n) { volatile char room[1600]; room[n] = 1; return outside(n) + room[n]; }
int (*const tasks[])(int) = {task, both};
int by_name(int n) { volatile char room[200]; room[n] = 1; return leaf(n) + room[n]; }
int by_pointer(int n) { volatile char room[200]; room[n] = 1; return tasks[n](n) + both(n) + room[n]; }
void keeps_vectors(lanes *x) {
  lanes a = x[0], b = x[1], c = x[2], d = x[3], e = x[4];
  outside(1);
  x[0] = a + e; x[1] = b + a; x[2] = c + b; x[3] = d + c; x[4] = e + d;
}
int large(int n) { volatile char room[70000]; room[n] = 1; return outside(n) + room[n]; }
"""
_ONLY_THE_RUN_KNOWS = "int outside(char *); int grows(int n) { char room[n]; return outside(room); }"


def _of_gnu(calls: str) -> int:
    return deepest_stack(CallGraph.of_gnu(calls))


def _of_clang(source: str, cpu: str, folder, vector_bytes: int = 16) -> CallGraph | None:
    """The graph of an object that zig's Clang makes for a processor."""
    pytest.importorskip("ziglang")
    (folder / "made.c").write_text(source)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("shutil.which", lambda name: None)
        command = compiler_of(cpu)
    options = ("-O2", "-ffunction-sections", "-fstack-size-section", "-fno-vectorize", "-fno-slp-vectorize")
    subprocess.run([*command, *options, "-c", "made.c", "-o", "made.o"], cwd=folder, check=True, timeout=120)
    return CallGraph.of_clang((folder / "made.o").read_bytes(), vector_bytes)


@pytest.mark.parametrize("cpu", _BOARDS)
def test_objects_of_clang_show_frames_and_calls(cpu, tmp_path):
    graph = _of_clang(_SOURCE, cpu, tmp_path)
    alone = lambda *names: deepest_stack(CallGraph(graph.frames, graph.callees, names))
    for name, room in (("leaf", 400), ("task", 800), ("both", 1600), ("large", 70000)):
        assert room <= graph.frames[name] <= room + 64
    assert set(graph.callees["by_name"]) == {"leaf"} and set(graph.callees["task"]) == {"outside"}
    assert {"task", "both", "by_name"} <= set(graph.entries) and "leaf" not in graph.entries  # the address of `both` is taken, though it is called by name too
    assert 600 <= alone("by_name") <= 720
    assert 1800 <= alone("by_pointer", "both", "task") <= 2000
    assert alone("by_pointer", "task", "both", "large") >= 70200  # what a pointer may point to


@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_vectors_kept_on_the_stack_are_counted(vector_bytes, tmp_path):
    graph = _of_clang(_SOURCE, "rv64gcv-bare", tmp_path, vector_bytes)
    assert 5 * vector_bytes <= graph.frames["keeps_vectors"] <= 6 * vector_bytes + 64


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 11, 19, 24, 30])
def test_any_number_of_vectors_is_counted(count, tmp_path):
    """The compiler multiplies by shifts and sums, or by a product."""
    each = lambda text: " ".join(text.format(k=k, next=(k + 1) % count) for k in range(count))
    source = f"""typedef float lanes __attribute__((vector_size(16))); void outside(void);
      void keeps(lanes *x) {{ {each("lanes a{k} = x[{k}];")} outside(); {each("x[{k}] = a{k} * a{next};")} }}"""
    frame = _of_clang(source, "rv64gcv-bare", tmp_path, 1 << 20).frames["keeps"]
    assert count <= frame >> 20 <= count + 1


@pytest.mark.parametrize("cpu", _BOARDS)
def test_frames_whose_size_only_the_run_knows_are_not_told(cpu, tmp_path):
    assert _of_clang(_ONLY_THE_RUN_KNOWS, cpu, tmp_path) is None


def test_objects_for_other_processors_are_not_told(tmp_path):
    subprocess.run(["cc", "-x", "c", "-c", "-", "-o", tmp_path / "made.o"], input=b"int f(void) { return 1; }", check=True, timeout=120)
    assert CallGraph.of_clang((tmp_path / "made.o").read_bytes(), 16) is None


def test_the_deepest_chain_of_calls():
    calls = "\n".join([*(f'node: {{ title: "{name}" label: "{name}\\nm.c:1:1\\n{size} bytes (static)" }}' for name, size in
                         (("entry", 16), ("run", 100), ("kernel", 40), ("task", 200), ("other", 8))),
                       'edge: { sourcename: "entry" targetname: "__indirect_call" label: "" }', 'edge: { sourcename: "run" targetname: "kernel" label: "" }',
                       'edge: { sourcename: "kernel" targetname: "__indirect_call" label: "" }', 'edge: { sourcename: "task" targetname: "memcpy" label: "" }'])
    assert _of_gnu(calls) >= 16 + 100 + 40 + 200 + 16
    assert _of_gnu(calls.replace("memcpy", "tanf")) > _of_gnu(calls) + 500
    asking = calls.replace('"kernel" targetname: "__indirect_call"', '"kernel" targetname: "model.c:rd_checkpoint"')
    asking += '\nnode: { title: "model.c:rd_checkpoint" label: "16 bytes" }\nedge: { sourcename: "model.c:rd_checkpoint" targetname: "__indirect_call" }'
    assert _of_gnu(asking) < _of_gnu(calls)  # what is asked there is no part of the model


def test_the_deepest_of_many_functions_is_found_at_once():
    """Three of them are called through pointers, one from another: of 500 there are too many chains to try all."""
    calls = "".join(f'node: {{ title: "f{k}" label: "{8 * k} bytes" }}\nedge: {{ sourcename: "f{k}" targetname: "__indirect_call" }}\n' for k in range(500))
    assert _of_gnu(calls) == 8 * (499 + 498 + 497 + 496)
