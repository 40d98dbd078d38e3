# SPDX-License-Identifier: Apache-2.0
"""Pages that run models: which kind a model gets, what is written, and how they behave in a browser: the results of the library, by keys alone, without
a network from the second visit on, with errors in words."""

import base64
import hashlib
import json
import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import roundel as rd
from roundel.cli import main
from roundel.ir.errors import OptionError
from roundel.pages import serve, write_site
from roundel.pages.folder import written as written_to
from tests.browser import FOUND, Browser
from tests.codegen.c_models import convolutions, dense, onnx_model

pytest.importorskip("ziglang")
in_browser = [pytest.mark.skipif(FOUND is None, reason="there is no browser"), pytest.mark.slow]
SHOWN = "!!document.querySelector('#results h2')"
AUDIT = (Path(__file__).parent.parent / "accessibility.js").read_text()


@pytest.mark.parametrize("wanted, message", [
    ({"mean": (1, 2)}, "--mean has 2 numbers"), ({"std": (0,)}, "none of them 0"), ({"std": (0, 0)}, "have 3 channels"), ({"kind": "film"}, "no kind of page"),
    ({"labels": "absent.txt"}, "cannot be read"), ({"labels": "."}, "no file of labels"), ({"tokenizer": "absent.json"}, "is no tokenizer"),
    ({"sample": "absent.wav"}, "there is no file"), ({"template": "text"}, "no place for the text"),
    ({"kind": "sound"}, "no model for a page of the kind sound"), ({"dynamic": {"n": 0}}, "nothing to run"), ({"window": 5}, "--window is not for"),
    ({"sample": __file__}, "is no picture"),
])
def test_what_cannot_be_is_refused_before_anything_is_written(wanted, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=message):
        write_site(convolutions()[0], tmp_path / "site", **wanted)
    assert not (tmp_path / "site").exists()


def test_numbers_are_no_picture_and_a_file_is_no_folder(tmp_path):
    with pytest.raises(OptionError, match="takes one picture and gives scores"):
        write_site(dense()[0], tmp_path / "site", kind="picture")
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="is a file"):
        write_site(dense()[0], tmp_path / "file")


def test_what_is_written(tmp_path):
    (tmp_path / "labels.txt").write_text("one\n\ntwo <b>\n" + "more\n" * 7)
    index = write_site(convolutions()[0], tmp_path / "site", title="a <b> & c", labels=tmp_path / "labels.txt")
    assert "<h1>a &lt;b&gt; &amp; c</h1>" in index.read_text()
    script = re.search("<script>(.*)</script>", index.read_text(), re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in index.read_text(), "browsers run what is said where the page is opened without a server"
    facts = json.loads((tmp_path / "site" / "site.json").read_text())
    assert (facts["kind"], facts["labels"]) == ("picture", ["one", "class 1", "two <b>"] + ["more"] * 7)
    worker = (tmp_path / "site" / "offline.js").read_text()
    kept = json.loads(worker[worker.index("FILES = ") + 8 : worker.index(";\n", worker.index("FILES = "))])
    written = {p.name for p in (tmp_path / "site").iterdir()}
    weights = {name for name in written if name.endswith(".weights")}
    assert set(kept) - {"./"} == written - {"offline.js", "roundel.d.mts", *weights}, "what is loaded is kept"
    assert facts["modules"] == [f"model{kind}.wasm" for kind in ("-relaxed-threads", "-threads", "-relaxed", "")], "a browser takes the first that it can run"
    assert len(weights) == len({(tmp_path / "site" / name).read_bytes() for name in weights}), "equal weights are one file"
    assert set(facts["files"]) == written
    (tmp_path / "site" / "mine.txt").write_text("mine")
    write_site(convolutions()[0], tmp_path / "site", title="another", kind="numbers")
    assert not (tmp_path / "site" / "picture.mjs").exists() and (tmp_path / "site" / "mine.txt").exists(), "files of the page before go, others stay"
    assert worker != (tmp_path / "site" / "offline.js").read_text(), "who has the page gets the new one"


def test_a_folder_stays_as_it_was_where_no_page_can_be_written(tmp_path):
    with pytest.raises(KeyError), written_to(tmp_path / "a" / "b", ["index.html"]):
        raise KeyError
    assert not (tmp_path / "a").exists()
    (tmp_path / "index.html").write_text("mine")
    for about in ("{}", "[]", '{"files": [1]}', '{"files": ["../index.html"]}'):
        (tmp_path / "site.json").write_text(about)
        with pytest.raises(OptionError, match="index.html is there"), written_to(tmp_path, ["index.html", "page.css"]):
            pass
    assert (tmp_path / "index.html").read_text() == "mine"


def test_a_port_that_is_taken_costs_no_time(tmp_path, monkeypatch, capfd):
    with serve(tmp_path) as server:
        monkeypatch.setattr("sys.argv", ["roundel", "web", str(tmp_path / "absent.onnx"), "--serve", "--port", str(server.server_port)])
        with pytest.raises(SystemExit):
            main()
    assert "--port 0" in capfd.readouterr().err


class Visit:
    """A page in a browser, served by a server that can be ended."""

    def __init__(self, folder):
        self.server = serve(folder)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.browser = Browser()

    def __enter__(self):
        self.browser.__enter__()
        self.browser.ask("Page.addScriptToEvaluateOnNewDocument", source="""window.shifts = 0; new PerformanceObserver((list) => {
            for (const e of list.getEntries()) if (!e.hadRecentInput) window.shifts += e.value; }).observe({ type: "layout-shift", buffered: true })""")
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

    def press(self, words):
        self.browser.run(f"[...document.querySelectorAll('button')].find((b) => b.textContent.includes('{words}')).click()")

    def text(self, selector):
        return self.browser.run(f"document.querySelector('{selector}').innerText")


def detector():
    """A map of what is bright in a picture of any size."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=1), helper.make_node("Sigmoid", ["m"], ["y"])]
    return onnx_model(nodes, {"x": ("f", (1, 3, "h", "w"))}, {"y": ("f", (1, 1, "h", "w"))})


def reader():
    """Letters of a line: dark columns are the first one, light ones none."""
    nodes = [helper.make_node("ReduceMin", ["x"], ["m"], axes=[1, 2], keepdims=0), helper.make_node("Neg", ["m"], ["d"]),
             helper.make_node("Unsqueeze", ["m", "last"], ["a"]), helper.make_node("Unsqueeze", ["d", "last"], ["b"]),
             helper.make_node("Concat", ["a", "b"], ["y"], axis=2)]
    return onnx_model(nodes, {"x": ("f", (1, 3, 16, "w"))}, {"y": ("f", (1, "w", 2))}, {"last": np.array([2])})


def loudness():
    """How loud a window is beside what was heard before, which is the state."""
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("ReduceMax", ["a"], ["p"], axes=[1], keepdims=1),
             helper.make_node("Max", ["p", "s", "least"], ["z"]), helper.make_node("Div", ["p", "z"], ["y"])]
    return onnx_model(nodes, {"x": ("f", (1, 800)), "s": ("f", (1, 1))}, {"y": ("f", (1, 1)), "z": ("f", (1, 1))}, {"least": np.array([[1e-3]], "f")})


def loudest_band():
    """How loud each of 40 bands of frequencies is in a quarter of a second."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0), helper.make_node("Softmax", ["m"], ["y"], axis=1)]
    return onnx_model(nodes, {"x": ("f", (1, 24, 40))}, {"y": ("f", (1, 40))})


WORDS = ["<unk>", "one", "two", "three", "four", "<end>"]


def counting():
    """The word after the last one, with the words so far as a state that grows."""
    follow = np.roll(np.eye(6, dtype="f"), 1, 1)
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"]), helper.make_node("Cast", ["ids"], ["f"], to=1),
             helper.make_node("Unsqueeze", ["f", "last"], ["g"]), helper.make_node("Concat", ["past", "g"], ["now"], axis=1)]
    return onnx_model(nodes, {"ids": ("q", (1, "s")), "past": ("f", (1, "p", 1))}, {"y": ("f", (1, "s", 6)), "now": ("f", (1, "p + s", 1))},
                      {"table": follow, "last": np.array([2])})


def meaning():
    """The mean of a vector for each word: those of numbers are near each other."""
    vectors = np.array([[1, 0], [0, 1], [0.1, 1], [0.2, 1], [0.3, 1], [1, 1]], "f")
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"])]
    return onnx_model(nodes, {"ids": ("q", (1, "s"))}, {"y": ("f", (1, "s", 2))}, {"table": vectors})


def moods():
    """Shares of two classes of a text: numbers are one, other words another."""
    nodes = [helper.make_node("Gather", ["table", "ids"], ["v"]), helper.make_node("ReduceMean", ["v"], ["y"], axes=[1], keepdims=0)]
    return onnx_model(nodes, {"ids": ("q", (1, "s"))}, {"y": ("f", (1, 2))}, {"table": np.array([[9, 0]] + [[0, 9]] * 5, "f")})


def tokenizer(folder):
    folder = folder.with_name("words")
    folder.mkdir(exist_ok=True)
    model = {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
             "vocab": {w: k for k, w in enumerate(WORDS)}}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [{"id": 5, "content": "<end>", "special": True}], "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False}, "model": model}))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<end>"}')
    return folder / "tokenizer.json"


SITES = {
    "numbers": lambda folder: write_site(dense()[0], folder),
    "pictures": lambda folder: write_site(convolutions()[0], folder, labels=labels(folder)),
    "detection": lambda folder: write_site(detector(), folder, size=64),
    "recognition": lambda folder: write_site(reader(), folder, labels=labels(folder, ["a"])),
    "sound": lambda folder: write_site(loudness(), folder),
    "spectrogram": lambda folder: write_site(loudest_band(), folder, mel="log,bands=40", labels=labels(folder, [f"band {k}" for k in range(40)])),
    "text": lambda folder: write_site(moods(), folder, tokenizer=tokenizer(folder), labels=labels(folder, ["words", "numbers"])),
    "generation": lambda folder: write_site(counting(), folder, tokenizer=tokenizer(folder)),
    "embedding": lambda folder: write_site(meaning(), folder, tokenizer=tokenizer(folder), kind="embedding"),
}


def labels(folder, names=None):
    folder.mkdir(exist_ok=True)
    (folder / "labels.txt").write_text("\n".join(names or [f"thing {k}" for k in range(10)]))
    return folder / "labels.txt"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A page of each kind, written once."""
    written = {}

    def of(kind):
        if kind not in written:
            written[kind] = SITES[kind](tmp_path_factory.mktemp(kind) / "site").parent
        return written[kind]

    return of


PASTE = """(async () => {
    const drawn = Object.assign(document.createElement("canvas"), { width: 30, height: 20 });
    drawn.getContext("2d").fillRect(0, 0, 30, 20);
    const given = new DataTransfer();
    given.items.add(new File([await new Promise((done) => drawn.toBlob(done))], "black.png", { type: "image/png" }));
    document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: given }));
})()"""
GIVE = """[...document.querySelectorAll('button')].find((b) => /test/.test(b.textContent))?.click();
          [...document.querySelectorAll('button')].find((b) => /random/.test(b.textContent))?.click(); document.querySelector('form')?.requestSubmit()"""


class TestInABrowser:
    pytestmark = in_browser

    def test_a_form_is_worked_by_keys_and_gives_the_results_of_the_library(self, site):
        with Visit(site("numbers")) as page:
            page.browser.run("document.getElementById('size-0').focus()")
            for key in ("ArrowUp", "Tab", "2", "Tab", "Enter"):  # one row more, all numbers 2, and run
                page.browser.press(key)
            page.wait(SHOWN)
            assert page.text("#results h3") == "y: float32 [2, 16]"
            want = np.asarray(rd.compile(dense()[0])(np.full((2, 16), 2, "f")))
            np.testing.assert_allclose(np.array(page.text("#results pre").split(), "f").reshape(2, 16), want, rtol=1e-4, atol=1e-5)
            assert "ms" in page.text("#facts") and "MB" in page.text("#facts")
            assert not page.browser.messages

    def test_threads_help_where_the_page_is_isolated(self, site):
        with Visit(site("pictures")) as page:
            page.open("?threads=3")
            page.wait("document.getElementById('facts').innerText.includes('Threads\\n3')")
            page.press("test")
            page.wait(SHOWN)
            assert page.text("#results tbody tr").startswith("thing ") and not page.browser.messages

    def test_mistakes_are_told_in_words(self, site):
        with Visit(site("numbers")) as page:
            page.browser.run("document.getElementById('input-0').value = '1 2 3'; document.querySelector('form').requestSubmit()")
            assert page.wait("!document.getElementById('error').hidden && document.getElementById('error').textContent") == "x wants 16 numbers, 3 were given"

    def test_a_picture_is_classified(self, site):
        with Visit(site("pictures")) as page:
            page.press("test")
            page.wait(SHOWN)
            pixels = page.browser.run("[...document.querySelector('canvas').getContext('2d').getImageData(0, 0, 12, 12).data]")
            x = (np.array(pixels, "f").reshape(12, 12, 4)[..., :3] / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
            scores = np.asarray(rd.compile(convolutions()[0])(np.ascontiguousarray(x.transpose(2, 0, 1)[None], "f")))[0]
            best = int(scores.argmax())
            assert page.text("#results tbody tr").split("\t")[:2] == [f"thing {best}", f"{100 * scores[best]:.1f} %"]

    def test_a_camera_is_watched_and_a_picture_is_pasted(self, site):
        with Visit(site("pictures")) as page:
            page.press("camera")
            page.wait(SHOWN)
            seen = page.browser.run("document.querySelector('canvas').toDataURL()")
            page.wait(f"document.querySelector('canvas').toDataURL() !== '{seen}'")  # the next picture
            page.press("Stop the camera")
            page.wait("[...document.querySelectorAll('button')].some((b) => b.textContent === 'Use the camera')")
            page.browser.run(PASTE)
            page.wait("document.querySelector('canvas').getContext('2d').getImageData(6, 6, 1, 1).data.join() === '0,0,0,255'")
            assert not page.browser.messages

    def test_a_microphone_is_heard_until_it_is_stopped(self, site):
        with Visit(site("sound")) as page:
            page.press("microphone")
            page.wait("/at most 100.0 %/.test(document.getElementById('results').innerText)")  # a beep
            page.press("Stop")
            assert page.text("#status") == "Done."
            length = page.text("#results p")
            time.sleep(0.5)
            assert page.text("#results p") == length and not page.browser.messages

    def test_a_text_has_classes(self, site):
        with Visit(site("text")) as page:
            page.browser.run("document.getElementById('text').value = 'one two'; document.querySelector('form').requestSubmit()")
            page.wait(SHOWN)
            assert page.text("#results tbody tr").split("\t")[:2] == ["numbers", "100.0 %"]

    @pytest.mark.parametrize("kind", SITES)
    @pytest.mark.parametrize("dark", [False, True])
    def test_nothing_keeps_anybody_from_using_it(self, kind, dark, site):
        with Visit(site(kind)) as page:
            page.browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
            page.browser.run(GIVE)
            page.wait(SHOWN)
            assert page.browser.run(AUDIT) == [] and not page.browser.messages
            assert page.browser.run("shifts") < 0.02, "what is seen stays where it is"

    def test_boxes_are_drawn_around_what_is_found(self, site):
        with Visit(site("detection")) as page:
            page.browser.run("document.getElementById('least').value = 0.9")
            page.browser.run(GIVE)
            page.wait(SHOWN)
            assert page.text("#results h2").endswith("boxes") or page.text("#results h2") == "1 box"
            page.browser.ask("Emulation.setDeviceMetricsOverride", width=320, height=640, deviceScaleFactor=1, mobile=False)
            page.wait("innerWidth === 320")
            page.browser.run("document.getElementById('least').value = 0.05; document.getElementById('least').dispatchEvent(new Event('input'))")
            assert page.browser.run("document.documentElement.scrollWidth") <= 320
            assert page.browser.run("document.querySelector('#results tbody th').clientWidth") >= 80, "names of classes are not broken letter by letter"

    def test_a_line_is_read(self, site):
        with Visit(site("recognition")) as page:
            page.browser.run(GIVE)
            page.wait(SHOWN)
            assert set(page.text(".read")) <= {"a"} and page.text(".read")

    def test_a_sound_is_heard_window_by_window(self, site):
        """The test sound is silence, then swells three times a second: what is above half of the loudest so far are three parts and more."""
        with Visit(site("sound")) as page:
            page.browser.run(GIVE)
            page.wait(SHOWN)
            rows = [row.split("\t") for row in page.text("#results tbody").splitlines()]
            assert rows[0][0] == "0.50 s" and len(rows) > 3

    def test_a_spectrogram_is_made_of_the_sound(self, site):
        """The test sound is a tone of 220 Hz."""
        centres = 700 * (10 ** (np.linspace(*(2595 * np.log10(1 + np.array([20, 8000]) / 700)), 42)[1:-1] / 2595) - 1)
        with Visit(site("spectrogram")) as page:
            page.browser.run(GIVE)
            page.wait(SHOWN)
            assert page.text("#results tbody tr").startswith(f"band {np.abs(centres - 220).argmin()}\t")

    def test_a_text_is_gone_on_with_until_it_ends(self, site):
        with Visit(site("generation")) as page:
            for _ in range(2):  # the second time begins anew
                page.browser.run("document.getElementById('prompt').value = 'one two'; document.querySelector('form').requestSubmit()")
                page.wait("document.querySelector('.written')?.textContent.includes('four') && !document.querySelector('button.first').disabled")
                assert page.text(".written").split() == ["one", "two", "three", "four"]

    def test_the_nearest_text_comes_first(self, site):
        with Visit(site("embedding")) as page:
            page.browser.run("""document.getElementById('query').value = 'one two'; document.getElementById('texts').value = 'none of these\\nthree four';
                                document.querySelector('form').requestSubmit()""")
            page.wait(SHOWN)
            assert page.text("#results tbody tr").split("\t")[0] == "three four"

    def test_the_second_visit_needs_no_network(self, site):
        with Visit(site("pictures")) as page:
            page.browser.run("navigator.serviceWorker.ready.then(() => 1)")
            page.wait("navigator.serviceWorker.controller !== null")
            page.end()
            page.open()
            assert page.browser.run("document.body.dataset.state") == "ready"
            page.press("test")
            page.wait(SHOWN)

    def test_without_a_server_the_page_says_that_it_needs_one(self, site):
        with Visit(site("numbers")) as page:
            page.browser.ask("Page.navigate", url=(site("numbers") / "index.html").as_uri())
            page.wait("location.protocol === 'file:' && document.getElementById('status')?.textContent.includes('python -m http.server')")
            assert not page.browser.run("document.getElementById('progress').checkVisibility()")

    def test_damaged_weights_are_told_in_words(self, tmp_path):
        write_site(dense()[0], tmp_path)
        for weights in tmp_path.glob("*.weights"):
            weights.write_bytes(weights.read_bytes()[:-10])
        with Visit(tmp_path) as page:
            assert page.browser.run("document.body.dataset.state") == "failed"
            assert "has 2102 bytes, the module wants 2112" in page.text("#error")
