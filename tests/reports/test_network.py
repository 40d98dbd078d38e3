# SPDX-License-Identifier: Apache-2.0
"""The graph of a report: the model's own nodes, what flows between them, the modules around them."""

import roundel as rd
from roundel.reports.network import network
from roundel.script import ir as I
from roundel.script import relax as R


@I.ir_module
class Branch:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            both = (x, y)
            a = both[0]
            s = R.add(a, y)
            r = R.nn.relu(s)
            out = (r, s)
            R.output(out)
        return out


def of(mod, **kernels):
    found = network(mod["main"], kernels)
    names = [n["name"] for n in found["nodes"]]
    return {n["name"]: n for n in found["nodes"]}, {(names[a], names[b]) for a, b in found["edges"]}


def test_nodes_and_what_flows_between_them():
    nodes, edges = of(Branch, fused=["s", "r"])
    assert [n["kind"] for n in nodes.values()] == ["input", "input", "node", "node", "output"]
    assert edges == {("x", "s"), ("y", "s"), ("s", "r"), ("r", "output"), ("s", "output")}  # tuples are seen through
    assert nodes["s"]["op"] == "add" and nodes["s"]["out"] == "float32[n, 4]" and nodes["r"]["kernels"] == ["fused"] and nodes["x"]["kernels"] == []


def test_edges_go_forward():
    found = network(Branch["main"], {})
    assert all(a < b for a, b in found["edges"])


def test_modules_around_the_nodes_of_a_pytorch_model():
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 3)))
    nodes, _ = of(rd.import_model(model, (torch.ones(2, 4),)))
    assert nodes["relu"]["path"] == ["1", "0"]


def test_modules_in_the_names_of_an_onnx_model(tmp_path):
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Relu", ["x"], ["a"], name="/layer1/layer1.0/act/Relu"), helper.make_node("Neg", ["a"], ["y"], name="/head/Neg")]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (2,)) for n in "xy"]
    mod = rd.import_model(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 17)]))
    found, _ = of(mod)
    assert found["/layer1/layer1.0/act/Relu"]["path"] == ["layer1", "layer1.0", "act"] and found["/head/Neg"]["path"] == ["head"]


def test_long_models_without_modules_are_folded_into_neighbours():
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Relu", [f"t{k}"], [f"t{k + 1}"], name=f"relu{k}") for k in range(90)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (2,)) for n in ("t0", "t90")]
    mod = rd.import_model(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 17)]))
    found, _ = of(mod)
    assert {tuple(n["path"]) for n in found.values() if n["kind"] == "node"} == {("nodes 1 to 40",), ("nodes 41 to 80",), ("nodes 81 to 90",)}
