# SPDX-License-Identifier: Apache-2.0
"""A report is one file that a browser opens, whatever the model's names are; two reports can be compared."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import roundel as rd
from roundel.ir.errors import OptionError
from roundel.reports.collect import collect
from roundel.reports.page import page, report_in

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
HOSTILE = '</script><script>alert("x")</script><!--'


@pytest.fixture(scope="module")
def model():
    """Two layers of one picture; one node has a name that would end the script that it is written into."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in (("c", (16, 3, 3, 3)), ("w", (16, 10)))]
    nodes = [helper.make_node("Conv", ["x", "c"], ["a"], name="/stem/conv", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"], name=HOSTILE),
             helper.make_node("GlobalAveragePool", ["b"], ["p"], name="/head/pool"), helper.make_node("Flatten", ["p"], ["f"], name="/head/flatten"),
             helper.make_node("MatMul", ["f", "w"], ["y"], name="/head/classify")]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 3, 32, 32)), helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 10))]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def found(model):
    return collect(model, name="two layers", sizes={"n": 2}, seconds=0.02)


def test_every_kernel_has_its_text_at_each_stage_and_its_time(found):
    kernel = next(k for k in found["kernels"] if "conv2d" in k["kernel"])
    stages = {s["name"]: s for s in kernel["stages"]}
    assert list(stages) == ["program", "schedule", "scheduled", "lowered", "assembly of the inner loop"]
    assert "T.prim_func" in stages["program"]["text"] and "sch." in stages["schedule"]["text"] and stages["scheduled"]["text"] != stages["program"]["text"]
    assert [s["against"] for s in stages.values()] == [None, None, 0, 2, None]
    assert kernel["measured_ms"] > 0 and kernel["nodes"] == ["/stem/conv", HOSTILE]


def test_memory_over_the_calls_of_a_run(found):
    """The picture of 16 channels lives from the convolution to the mean that reads it, and nothing overlaps what lives with it."""
    memory = found["memory"]
    assert len(memory["steps"]) == 3 and memory["nbytes"] >= max(t["offset"] + t["nbytes"] for t in memory["tensors"])
    first = memory["tensors"][0]
    assert (first["first"], first["last"], first["nbytes"]) == (0, 1, 2 * 16 * 32 * 32 * 4)
    for a in memory["tensors"]:
        for b in memory["tensors"]:
            together = a is not b and a["first"] <= b["last"] and b["first"] <= a["last"]
            assert not together or a["offset"] + a["nbytes"] <= b["offset"] or b["offset"] + b["nbytes"] <= a["offset"]


def test_what_else_is_told(found):
    assert found["symbolic"] == ["n"] and found["sizes"] == {"n": 2} and found["roofs"]["gflops"] > 0 and found["passes"][-1]["programs"] == 3
    assert found["weights_nbytes"] >= (16 * 27 + 160) * 4 and {c["site"] for c in found["choices"]} >= {"/stem/conv", "/head/classify"}


def test_names_cannot_end_the_script_and_nothing_is_fetched(found):
    text = page(found)
    assert HOSTILE not in text and text.count("</script>") == 2 and not re.search(r"""(src|href)=["']?(https?:|//)""", text)
    assert "default-src 'none'" in text


def test_numbers_that_json_does_not_have(found):
    text = page(found | {"prepared_s": float("inf")})
    assert "Infinity" not in text.split('id="report">')[1].split("</script>")[0]


def test_a_report_is_read_again_and_compared(found, tmp_path):
    path = tmp_path / "a.html"
    path.write_text(page(found))
    again = report_in(path)
    assert again["kernels"] == json.loads(json.dumps(found["kernels"]))
    assert page(again, before=again).count('type="application/json"') == 2


@pytest.mark.parametrize(("content", "message"), [("hello", "is no report"), ('<script type="application/json" id="report">{</script>', "is no report"),
                                                  ('<script type="application/json" id="report">{"kernels": [], "format": 0}</script>', "another format")])
def test_what_is_no_report(tmp_path, content, message):
    (tmp_path / "x.html").write_text(content)
    with pytest.raises(OptionError, match=message):
        report_in(tmp_path / "x.html")


def test_from_python(model, tmp_path):
    save(model, tmp_path / "m.onnx")
    path = rd.report(tmp_path / "m.onnx", out=tmp_path / "r.html", sizes={"n": 1}, seconds=0, assembly=False)
    assert report_in(path)["model"] == "m.onnx" and "measured_ms" not in report_in(path)["kernels"][0]
    assert rd.report(path, out=tmp_path / "both.html", against=path).stat().st_size > path.stat().st_size


def test_a_size_that_the_model_does_not_have(model, tmp_path):
    with pytest.raises(OptionError, match="no symbolic dimension 'seq'"):
        rd.report(model, out=tmp_path / "r.html", sizes={"seq": 1})
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_differences_of_two_texts(found, tmp_path):
    """The page's own function: what it shows without the removed lines is the new text, without the added ones the old one."""
    functions = re.search(r"function difference\(.*?\n}\n", page(found), re.DOTALL)[0]
    cases = [["a\nb\nc", "a\nx\nc"], ["a", "b\na\nb"], ["", "a"], ["a\nb\nc\nd", "d\nc\nb\na"], ["same", "same"]]
    run = f"console.log(JSON.stringify({json.dumps(cases)}.map(([a, b]) => difference(a, b))));"
    (tmp_path / "t.js").write_text(f"const make = (kind, _, text) => [kind, text];\n{functions}{run}")
    out = json.loads(subprocess.run(["node", str(tmp_path / "t.js")], capture_output=True, text=True, check=True).stdout)
    for (before, after), lines in zip(cases, out, strict=True):
        assert "\n".join(text[2:] for kind, text in lines if not kind.endswith(".added")) == before
        assert "\n".join(text[2:] for kind, text in lines if not kind.endswith(".removed")) == after


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="there is no browser")
def test_a_browser_draws_it(found, tmp_path):
    browser = next(b for b in BROWSERS if shutil.which(b))
    (tmp_path / "r.html").write_text(page(found, before=found))
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--enable-logging=stderr", "--dump-dom",
                           (tmp_path / "r.html").as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr  # no error of the script
    body = done.stdout.split("<main>")[1]
    assert body.count("<section") == 8 and body.count("<svg") == 3 and '<title>head 3 nodes, closed module head</title>' in body
