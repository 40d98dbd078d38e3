# SPDX-License-Identifier: Apache-2.0
"""A recorded schedule does the same steps again: after the rule was edited, on a program with other names, of a symbolic size too."""

import json

import pytest

from roundel import te
from roundel.ir import load_json, save_json, structural_equal
from roundel.ir.errors import ScheduleError
from roundel.strategy import Applied, Program, choose
from roundel.strategy.records import key_of, sizes_of
from roundel.strategy.replay import record_of, replay
from roundel.target import Target

TARGET = Target("znver5")


def product(m=48, n=64, k=100, relu=True):
    a, b, r = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B"), te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.max(c[i, j], 0.0), "D") if relu else c])


def softmax(rows=30, width=70):
    x, k = te.placeholder((rows, width), "float32", "X"), te.reduce_axis((0, width), "k")
    top = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), "top")
    return te.create_prim_func([x, te.compute((rows, width), lambda i, j: te.exp(x[i, j] - top[i]), "Y")])


PROGRAMS = {"product": (product(), (1,)), "its weights are data": (product(), ()), "packed weights": (product(48, 512, 512), (1,)),
            "symbolic rows": (product(m=te.var("n")), (1,)),
            "one row": (product(m=1, n=1000), (1,)), "softmax": (softmax(), ()), "symbolic width": (softmax(te.var("n"), te.var("m")), ())}


def renamed(node):
    """The same program with other names everywhere."""
    data = json.loads(save_json(node))
    for k, entry in enumerate(data["nodes"]):
        (kind, fields), = entry.items()
        if kind.endswith((".Var", ".Buffer", ".Block")):
            fields["name"] = f"other{k}"
    return load_json(json.dumps(data))


def chosen(func, constants=()):
    return next(a for a in choose(func, TARGET, constants) if a.fits)


def recorded(func, constants=(), **facts):
    found = chosen(func, constants)
    record = record_of(Program(func, TARGET, constants), found.name, found.applied, threads=1, timings=(), **facts)
    return found.applied, record


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_schedule_again(name):
    func, constants = PROGRAMS[name]
    applied, record = recorded(func, constants)
    kept = json.loads(json.dumps([record.trace, record.layouts]))  # nothing but JSON
    again = replay(Program(func, TARGET, constants), record)
    assert structural_equal(again.func, applied.func) and again.func.script() == applied.func.script()
    assert kept == [record.trace, record.layouts]
    assert {k: repr(m.final_indices) for k, m in again.layouts.items()} == {k: repr(m.final_indices) for k, m in applied.layouts.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_a_program_with_other_names(name):
    func, constants = PROGRAMS[name]
    _, record = recorded(func, constants)
    other = Program(renamed(func), TARGET, constants)
    assert key_of(other, 1) == record.key
    again = replay(other, record)
    assert again.func.script() == chosen(other.func, constants).applied.func.script()  # names in annotations are the program's too
    assert "other" in again.func.script()


def test_steps_that_name_buffers_and_sizes():
    func = product(m=te.var("n"))
    program = Program(func, TARGET)
    sch = program.fork()
    block = sch.get_block("C")
    sch.cache_read(block, "B", "local")
    sch.cache_write(block, "C", "local")
    sch.transform_layout("C", ("write", 0), lambda i, j: (j, i))
    sch.reindex("C", ("read", 0))
    rows, = sizes_of(func)
    loop = sch.get_loops("C")[0]
    sch.split(loop, [None, rows // 2 + 1])
    record = record_of(program, "mine", Applied(sch), threads=1, timings=())
    names = [b.name for b in sch.func.buffer_params] + ["C_local", "B_local"]
    assert not any(f'"{n}"' in json.dumps(record.trace) for n in names)
    again = replay(Program(renamed(func), TARGET), record)
    assert structural_equal(again.func, sch.func)


def test_the_key_tells_what_a_measurement_holds_for():
    key = key_of(Program(product(), TARGET), 1)
    assert key == key_of(Program(product().with_attr("global_symbol", "other"), TARGET.with_(l2_bytes=1 << 18, dram_gbs=3.0, cores=64)), 1)
    others = [key_of(Program(product(n=65), TARGET), 1), key_of(Program(product(), TARGET, (1,)), 1), key_of(Program(product(), Target("znver3")), 1),
              key_of(Program(product(), TARGET.with_(vector_bytes=32)), 1), key_of(Program(product(), TARGET), 2)]
    assert len({key, *others}) == 6


def test_a_record_of_another_program_does_not_fit():
    _, record = recorded(product(), (1,))
    with pytest.raises(ScheduleError):
        replay(Program(softmax(), TARGET), record)


def test_layouts_that_its_steps_do_not_make_do_not_fit():
    from dataclasses import replace

    func, constants = PROGRAMS["packed weights"]
    _, record = recorded(func, constants)
    for layouts in ({}, {"0": record.layouts["1"]}, {"1": {**record.layouts["1"], "to": record.layouts["1"]["to"][::-1]}}):
        with pytest.raises(ScheduleError, match="layouts of constants"):
            replay(Program(func, TARGET, constants), replace(record, layouts=layouts))


def test_a_layout_of_what_is_no_constant_does_not_fit():
    func, constants = PROGRAMS["packed weights"]
    applied, record = recorded(func, constants)
    assert applied.layouts
    with pytest.raises(ScheduleError, match="no constant"):
        replay(Program(func, TARGET), record)


@pytest.mark.parametrize("trace", [
    None, [["no_such_step", {}, {}, [], None]], [[1, 2]], "text", [["get_block", {"dict": {}}, {"dict": {"name": 99}}, [], None]]
])
def test_what_is_no_trace_does_not_fit(trace):
    from dataclasses import replace

    _, record = recorded(product())
    with pytest.raises(ScheduleError):
        replay(Program(product(), TARGET), replace(record, trace=trace))


def test_a_step_that_nobody_checks_is_neither_kept_nor_done():
    program = Program(product(), TARGET)
    sch = program.fork()
    sch.unsafe_set_dtype("C", 0, "float16")
    with pytest.raises(ScheduleError, match="nobody checks"):
        record_of(program, "mine", Applied(sch), threads=1, timings=())
