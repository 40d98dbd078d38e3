# SPDX-License-Identifier: Apache-2.0
"""Pages that run models: which kind a model gets, what is written, and how they behave in a browser: the results of the library, by keys alone, without
a network from the second visit on, with errors in words."""

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import roundel as rd
from roundel.ir.errors import OptionError
from roundel.pages import serve, write_site
from roundel.pages.kind import Picture, picture_of
from roundel.runtime.metadata import TensorInfo
from tests.browser import FOUND, Browser
from tests.codegen.c_models import convolutions, dense

pytest.importorskip("ziglang")
in_browser = [pytest.mark.skipif(FOUND is None, reason="there is no browser"), pytest.mark.slow]
AUDIT = (Path(__file__).parent.parent / "accessibility.js").read_text()
SCORES = [TensorInfo("y", "float32", (1, 10))]


def image(shape, dtype="float32"):
    return [TensorInfo("x", dtype, shape)]


def test_pictures_are_told_by_the_input():
    assert picture_of(image((1, 3, 12, 16)), SCORES) == Picture(16, 12, 3, True, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert picture_of(image(("n", 20, 30, 3)), SCORES) == Picture(30, 20, 3, False, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert picture_of(image((1, 1, "h", "w"), "uint8"), SCORES, mean=[0], std=[1]) == Picture(224, 224, 1, True, (0,), (1,))
    assert picture_of(image((1, 8, 8)), SCORES) is None
    assert picture_of(image((1, 16, 8, 8)), SCORES) is None
    assert picture_of(image((1, 3, 8, 8)) * 2, SCORES) is None


@pytest.mark.parametrize("wanted, message", [
    ({"mean": (1, 2)}, "--mean has 2 numbers"), ({"std": (0,)}, "none of them 0"), ({"kind": "film"}, "no kind of page"),
    ({"labels": "absent.txt"}, "cannot be read"), ({"labels": "."}, "no file of labels"),
])
def test_what_cannot_be_is_refused_before_anything_is_written(wanted, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=message):
        write_site(convolutions()[0], tmp_path / "site", **wanted)
    assert not (tmp_path / "site").exists()


def test_numbers_are_no_picture_and_a_file_is_no_folder(tmp_path):
    with pytest.raises(OptionError, match="does not take one picture"):
        write_site(dense()[0], tmp_path / "site", kind="picture")
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="is a file"):
        write_site(dense()[0], tmp_path / "file")


def test_what_is_written(tmp_path):
    (tmp_path / "labels.txt").write_text("one\n\ntwo <b>\n")
    index = write_site(convolutions()[0], tmp_path / "site", title="a <b> & c", labels=tmp_path / "labels.txt")
    assert "<h1>a &lt;b&gt; &amp; c</h1>" in index.read_text()
    facts = json.loads((tmp_path / "site" / "site.json").read_text())
    assert (facts["kind"], facts["labels"]) == ("picture", ["one", "two <b>"])
    worker = (tmp_path / "site" / "offline.js").read_text()
    kept = json.loads(worker[worker.index("FILES = ") + 8 : worker.index(";\n", worker.index("FILES = "))])
    written = {p.name for p in (tmp_path / "site").iterdir()}
    weights = {name for name in written if name.endswith(".weights")}
    assert set(kept) - {"./"} == written - {"offline.js", "roundel.d.mts", *weights}, "what is loaded is kept"
    assert facts["modules"] == [f"model{kind}.wasm" for kind in ("-relaxed-threads", "-threads", "-relaxed", "")], "a browser takes the first that it can run"
    assert len(weights) == len({(tmp_path / "site" / name).read_bytes() for name in weights}), "equal weights are one file"
    write_site(convolutions()[0], tmp_path / "site", title="another")
    assert worker != (tmp_path / "site" / "offline.js").read_text(), "who has the page gets the new one"


class Visit:
    """A page in a browser, served by a server that can be ended."""

    def __init__(self, folder):
        self.server = serve(folder)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.browser = Browser()

    def __enter__(self):
        self.browser.__enter__()
        self.open()
        return self

    def __exit__(self, *error):
        self.browser.__exit__(*error)
        self.end()

    def end(self):
        if self.thread.is_alive():
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()

    def open(self, query=""):
        self.browser.ask("Page.navigate", url=f"http://localhost:{self.server.server_port}/{query}")
        self.wait("document.body?.dataset.state")

    def wait(self, script):
        end = time.monotonic() + 60
        while not (found := self.browser.run(script)):
            assert time.monotonic() < end, f"{script}: {self.browser.run('document.body.innerText')} {self.browser.messages}"
            time.sleep(0.05)
        return found

    def text(self, selector):
        return self.browser.run(f"document.querySelector('{selector}').innerText")


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    write_site(dense()[0], folder)
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "labels.txt").write_text("\n".join(f"thing {k}" for k in range(10)))
    write_site(convolutions()[0], folder / "site", labels=folder / "labels.txt")
    return folder / "site"


class TestInABrowser:
    pytestmark = in_browser

    def test_a_form_is_worked_by_keys_and_gives_the_results_of_the_library(self, numbers):
        with Visit(numbers) as page:
            page.browser.run("document.getElementById('size-0').focus()")
            for key in ("ArrowUp", "Tab", "2", "Tab", "Enter"):  # one row more, all numbers 2, and run
                page.browser.press(key)
            page.wait("!document.getElementById('results').hidden")
            assert page.text("#results h3") == "y: float32 [2, 16]"
            want = np.asarray(rd.compile(dense()[0])(np.full((2, 16), 2, "f")))
            np.testing.assert_allclose(np.array(page.text("#results pre").split(), "f").reshape(2, 16), want, rtol=1e-4, atol=1e-5)
            assert "ms" in page.text("#facts") and "MB" in page.text("#facts")
            assert not page.browser.messages

    def test_threads_help_where_the_page_is_isolated(self, pictures):
        with Visit(pictures) as page:
            page.open("?threads=3")
            page.wait("document.getElementById('facts').innerText.includes('Threads\\n3')")
            page.browser.run("[...document.querySelectorAll('button')].find((b) => b.textContent.includes('test')).click()")
            page.wait("!document.getElementById('results').hidden")
            assert page.text("#results tbody tr").startswith("thing ") and not page.browser.messages

    def test_mistakes_are_told_in_words(self, numbers):
        with Visit(numbers) as page:
            page.browser.run("document.getElementById('input-0').value = '1 2 3'; document.querySelector('form').requestSubmit()")
            assert page.wait("!document.getElementById('error').hidden && document.getElementById('error').textContent") == "x wants 16 numbers, 3 were given"

    def test_a_picture_is_classified(self, pictures):
        with Visit(pictures) as page:
            page.browser.run("[...document.querySelectorAll('button')].find((b) => b.textContent.includes('test')).click()")
            page.wait("!document.getElementById('results').hidden")
            pixels = page.browser.run("[...document.querySelector('canvas').getContext('2d').getImageData(0, 0, 12, 12).data]")
            x = (np.array(pixels, "f").reshape(12, 12, 4)[..., :3] / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
            scores = np.asarray(rd.compile(convolutions()[0])(np.ascontiguousarray(x.transpose(2, 0, 1)[None], "f")))[0]
            best = int(scores.argmax())
            assert page.text("#results tbody tr").split("\t")[:2] == [f"thing {best}", f"{100 * scores[best]:.1f} %"]

    @pytest.mark.parametrize("kind", ["numbers", "pictures"])
    @pytest.mark.parametrize("dark", [False, True])
    def test_nothing_keeps_anybody_from_using_it(self, kind, dark, request):
        with Visit(request.getfixturevalue(kind)) as page:
            page.browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
            page.browser.run("[...document.querySelectorAll('button')].at(-1).click(); document.querySelector('form')?.requestSubmit()")
            page.wait("!document.getElementById('results').hidden")
            assert page.browser.run(AUDIT) == []

    def test_the_second_visit_needs_no_network(self, pictures):
        with Visit(pictures) as page:
            page.browser.run("navigator.serviceWorker.ready.then(() => 1)")
            page.wait("navigator.serviceWorker.controller !== null")
            page.end()
            page.open()
            assert page.browser.run("document.body.dataset.state") == "ready"
            page.browser.run("[...document.querySelectorAll('button')].find((b) => b.textContent.includes('test')).click()")
            page.wait("!document.getElementById('results').hidden")

    def test_damaged_weights_are_told_in_words(self, tmp_path):
        write_site(dense()[0], tmp_path)
        for weights in tmp_path.glob("*.weights"):
            weights.write_bytes(weights.read_bytes()[:-10])
        with Visit(tmp_path) as page:
            assert page.browser.run("document.body.dataset.state") == "failed"
            assert "has 2102 bytes, the module wants 2112" in page.text("#error")
