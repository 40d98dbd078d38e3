# SPDX-License-Identifier: Apache-2.0
"""What is no Relay model, or asks for what a compiled model has not, is told with its place; a file's numbers are checked before they are believed."""

import json
import random

import numpy as np
import pytest

import roundel as rd
from roundel.frontend.relay import load_params
from roundel.ir.errors import ModelError, RoundelError, UnsupportedError

from .models import MODELS
from .written import as_json, as_params, as_text

HEAD = '#[version = "0.0.5"]\n'
X = "%x: Tensor[(2, 3), float32]"


@pytest.mark.parametrize(("text", "words"), [
    (HEAD + f"def @main({X}) {{ add(%x, %z) }}", ["line 2", "%z", "not defined"]),
    (HEAD + f"def @main({X}) {{ add(%x, }} ", ["line 2", "an expression"]),
    (HEAD + f"def @main({X}) {{ add(%x, %x)", ["'}'", "the end of the text"]),
    (HEAD + f"def @main({X}) {{ nn.unheard_of(%x) }}", ["nn.unheard_of", "1 call", "roundel.relay.operator"]),
    (HEAD + f"def @main({X}) {{ reshape(%x) }}", ["reshape", "newshape", "missing"]),
    (HEAD + f"def @main({X}) {{ nn.softmax(%x, axis=7) }}", ["nn.softmax"]),
    (HEAD + f"def @main({X}) {{ @other(%x) }}", ["@other", "@main"]),
    (HEAD + f"def @main({X}) {{ @main(%x) }}", ["@main", "calls itself"]),
    (HEAD + f"def @main({X}) {{ %x.1 }}", ["field 1"]),
    (HEAD + f"def @main({X}) {{ add(%x, meta[relay.Constant][0]) }}", ["meta[relay.Constant][0]", "JSON"]),
    (HEAD + "def @main(%x) { %x }", ["%x", "no type"]),
    (HEAD + f"def @main({X}) {{ split(%x, indices_or_sections=1000000007, axis=0) }}", ["split", "1000000007 parts"]),
    (HEAD + f"def @main({X}) {{ reshape(%x, newshape=[-1, -1]) }}", ["reshape", "more than one -1"]),
    (HEAD + f"def @main({X}) {{ if (less(%x, 5f)) {{ %x }} else {{ %x }} }}", ["condition", "one truth value"]),
    (HEAD + f"def @main({X}) {{ if (less(sum(%x), 5f)) {{ (%x, %x) }} else {{ %x }} }}", ["branches", "forms"]),
    (HEAD + f"def @main({X}) {{ if (less(sum(%x), 5f)) {{ sum(%x) }} else {{ %x }} }}", ["branches", "0 and 2 dimensions"]),
    (HEAD + f"def @main({X}) {{ if ((%x, 0f)) {{ %x }} else {{ %x }} }}", ["condition", "a tuple"]),
    (HEAD + f"def @main({X}) {{ 5f8 }}", ["'5f8'", "no number"]), (HEAD + f"def @main({X}) {{ %x.5f }}", ["number of a field", "'5f'"]),
    (HEAD + f"def @main({X}) {{ cast(%x, dtype=\"float8\") }}", ["cast", "float8"]), (HEAD + "def @main(%x: Tensor[(2), float8]) { %x }", ["float8"]),
    (HEAD + "def @main(%x: Tensor[(2), float32", ["']'", "the end of the text"]), (HEAD + "match @main(%x)", ["a bracket"]),
    (HEAD + "def @loop(%i: int32, %x: int32) { if (less(%i, 5)) { @loop(add(%i, 1)) } else { %x } }\ndef @main(%x: int32) { @loop(0, %x) }",
     ["@loop", "1 and 2 operands"]),
    (HEAD + "def @loop(%i: int32, %x: int32) { if (less(%i, 5)) { @loop(add(%i, 1), (%x, %x)) } else { %x } }\ndef @main(%x: int32) { @loop(0, %x) }",
     ["@loop", "other operands"]),
    (HEAD + "type List[A] { Nil }\ndef @main(%x: List[float32]) { match (%x) { Nil => 1f } }", ["%x", "List"]),
    (HEAD + "/* open", ["comment", "line 2"]),
    (HEAD + "def @main() { $ }", ["'$'"]), (HEAD, ["no function"]), ("", ["no function"]), ("no-such-file.relay", ["cannot be read"]),
    ("[]", ["returns nothing"]),
    ("{}", ["no JSON file of TVM's"]), ('{"root": 0, "nodes": [{"type_key": "relay.Call"}]}', ["node 0", "damaged"]),
])
def test_what_is_told_of_a_text(text, words):
    with pytest.raises(RoundelError) as error:
        rd.import_relay(text)
    for word in words:
        assert word in str(error.value), str(error.value)


def test_expressions_that_nest_too_deep_are_refused():
    with pytest.raises(ModelError, match="nested more than"):
        rd.import_relay(f"def @main({X}) {{ " + "abs(" * 5000 + "%x" + ")" * 5000 + " }")


def test_a_long_chain_is_read_without_recursion():
    lines = "".join(f"  %{k} = nn.relu({f'%{k - 1}' if k else '%x'});\n" for k in range(3000))
    assert rd.import_relay(f"def @main({X}) {{\n{lines}  %2999\n}}")["main"]


def test_parameters_are_found_by_the_names_that_texts_give_them():
    text = f"def @main({X}, %fc_weight: Tensor[(4, 3), float32]) {{ nn.dense(%x, %fc_weight, units=4) }}"
    weight = np.ones((4, 3), np.float32)
    assert rd.import_relay(text, {"fc.weight": weight})["main"].attrs["input_names"] == ("x",)
    with pytest.raises(ModelError, match="'fc_bias'"):
        rd.import_relay(text, {"fc_bias": weight})
    with pytest.raises(ModelError, match=r"\(3, 4\)"):
        rd.import_relay(text, {"fc_weight": weight.T})


def test_kernels_of_transposed_convolutions_up_to_tvm_0_11():
    """Their layout was called OIHW and was (in, out, ...) nevertheless."""
    model = MODELS["unet"]()
    text = as_json(model.module, "0.10.0").replace('"kernel_layout": "IOHW"', '"kernel_layout": "OIHW"')
    out = rd.interpret(rd.import_relay(text, model.params))["main"](*model.inputs.values())
    np.testing.assert_allclose(np.asarray(out), model.expected[0], rtol=2e-4, atol=2e-4)


def test_a_user_supplies_an_operator():
    from roundel.frontend.relay.registry import TABLE

    @rd.relay.operator("contrib.doubled")
    def doubled(node, x):
        return node.make("multiply", x, node.like(node.attr("by", 2.0), x))

    try:
        run = rd.compile(rd.import_relay(f"def @main({X}) {{ contrib.doubled(%x, by=3f) }}"))
        np.testing.assert_array_equal(run(np.ones((2, 3), np.float32)), 3 * np.ones((2, 3), np.float32))
    finally:
        del TABLE["contrib.doubled"]


def test_params_read_back():
    params = {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "b.c": np.float32(3), "flag": np.array([True, False]), "half": np.ones((0, 2), np.float16)}
    for name, array in load_params(as_params({k: np.asarray(v) for k, v in params.items()})).items():
        np.testing.assert_array_equal(array, params[name])


def test_damaged_files_are_errors():
    model = MODELS["branches"]()
    good = as_params({"w": np.arange(10, dtype=np.float32)})
    random_ = random.Random(0)
    for _ in range(200):
        data = bytearray(good)
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
        try:
            load_params(bytes(data[:random_.randrange(len(data))] if random_.random() < 0.3 else data))
        except RoundelError:
            continue
    text, document = as_text(model.module), json.loads(as_json(model.module))
    for _ in range(150):
        at = random_.randrange(len(text))
        try:
            rd.import_relay(text[:at] + random_.choice(["", "(", "}", "%9", "-1", '"', "[[", "fn", "meta[x][1]"]) + text[at + random_.randrange(4):] + "\n")
        except RoundelError:
            pass
        damaged = json.loads(json.dumps(document))
        node = random_.choice(damaged["nodes"])
        node[random_.choice([*node, "attrs", "data"])] = random_.choice([None, 3, "x", [], {}, [10 ** 6], {"op": "-1"}, [[1]]])
        try:
            rd.import_relay(json.dumps(damaged))
        except RoundelError:
            pass


def test_every_unsupported_operator_is_listed():
    with pytest.raises(UnsupportedError, match="2 operators") as error:
        rd.import_relay(f"def @main({X}) {{ %0 = vision.roi_pool(%x); %1 = foo.bar(%0); foo.bar(%1) }}")
    assert "foo.bar, 2 calls" in str(error.value)


def test_branches_of_different_sizes_have_a_size_that_the_run_tells():
    text = "def @main(%x: Tensor[(4, 3), float32]) { %0 = if (greater(sum(%x), 0f)) { strided_slice(%x, begin=[0], end=[2]) } else { %x }; sum(%0, axis=[1]) }"
    run = rd.compile(rd.import_relay(text))
    for x in (np.ones((4, 3), np.float32), -np.ones((4, 3), np.float32)):
        np.testing.assert_array_equal(run(x), (x[:2] if x.sum() > 0 else x).sum(1))
