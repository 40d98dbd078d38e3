# SPDX-License-Identifier: Apache-2.0
"""Which kind of page a model gets, told from what it takes and gives; where its tokenizer and its labels come from."""

import json

import onnx
import pytest

from roundel.ir.errors import OptionError
from roundel.pages.asked import Asked, check_used
from roundel.pages.kind import classes, told, wants_tokenizer
from roundel.pages.labels import fitting, labels_for
from roundel.pages.mel import of_input, parsed
from roundel.pages.pictures import Boxes, Picture, boxes_of, letters, picture_of
from roundel.pages.signature import Signature, State, states_of
from roundel.pages.tokenizer import of_gguf, tokenizer_for
from roundel.runtime.metadata import TensorInfo

SCORES = [TensorInfo("y", "float32", (1, 10))]
WORDS = {"model": {"type": "WordLevel", "vocab": {str(k): k for k in range(100)}}, "ends": []}


def infos(text):
    """``x:float32[1,3,n]; y`` as TensorInfo; float32 by default."""
    found = []
    for part in filter(None, text.replace(" ", "").split(";")):
        head, _, dims = part.rstrip("]").partition("[")
        name, _, dtype = head.partition(":")
        found.append(TensorInfo(name, dtype or "float32", tuple(int(d) if d.isdigit() else d for d in dims.split(",") if d)))
    return tuple(found)


def model(inputs, outputs):
    given, results = infos(inputs), infos(outputs)
    return Signature(given, results, states_of(given, results))


def test_pictures_are_told_by_the_input():
    of = lambda text, **asked: picture_of(infos(text), SCORES, Asked(**asked))
    assert of("x[1,3,12,16]") == Picture(16, 12, 3, True, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert of("x[n,20,30,3]") == Picture(30, 20, 3, False, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert of("x:uint8[1,1,h,w]", mean=(0,), std=(1,), size=96) == Picture(96, 96, 1, True, (0,), (1,))
    assert of("x[1,8,8]") is of("x[1,16,8,8]") is of("x[1,3,8,8];z[1,3,8,8]") is None


@pytest.mark.parametrize("inputs, outputs, asked, kind", [
    ("x[n,3,224,224]", "y[n,1000]", {}, "picture"),
    ("x[1,3,h,w]", "y[1,21,h,w]", {}, "numbers"),
    ("x[1,3,h,w]", "y[1,1,h,w]", {}, "detection"),  # a map of text
    ("x[1,3,640,640]", "y[1,84,8400]", {}, "detection"),
    ("x[1,3,h,w]", "b[n,4]; c:int64[n]; s[n]", {}, "detection"),
    ("x[n,3,h,w]", "y[n,4]; z[n,7]", {}, "picture"),
    ("x[n,3,48,w]", "y[n,w//8,100]", {"labels": ("a",) * 98}, "recognition"),
    ("x[n,s]; state[2,n,128]; sr:int64", "y[n,1]; z[2,n,128]", {}, "sound"),
    ("x[1,1,16000]", "y[1,35]", {}, "sound"),
    ("x[1,512]; h[1,1,11]", "y[1,1]; g[1,1,11]", {}, "sound"),
    ("x[t,1,6]; h[1,1,11]", "y[t,1,11]; g[1,1,11]", {}, "numbers"),  # features, not samples
    ("x[n,s]", "y[n,s//320,100]", {}, "sound"),
    ("x[n,784]", "y[n,10]", {}, "numbers"),
    ("x[n,m]", "r[n,m]; i:int64[n,m]; g:bool[n,m]; t:int64[n,2]; s:int64[2]", {}, "numbers"),
    ("x[n,m]", "r[n,m]", {}, "numbers"),
    ("x[n,784]", "y[n,10]", {"kind": "sound"}, "sound"),
    ("i:int64[n,s]; m:int64[n,s]", "y[n,384]", {}, "numbers"),  # nothing makes tokens
    ("i:int64[n,s]; mask:int64[n,s]", "y[n,384]", {"tokenizer": WORDS}, "embedding"),
    ("i:int64[n,s]; mask:int64[n,s]; token_type:int64[n,s]", "y[n,s,64]", {"tokenizer": WORDS}, "embedding"),
    ("i:int64[n,s]; mask:int64[n,s]", "y[n,3]", {"tokenizer": WORDS}, "text"),
    ("i:int64[1,s]", "y[1,s,100]", {"tokenizer": WORDS}, "generation"),
    ("i:int64[n,s]; mask:int64[n,t]; p[n,3,past,8]", "y[n,s,100]; q[n,3,past+s,8]", {"tokenizer": WORDS}, "generation"),
])
def test_the_kind_is_told_by_inputs_and_outputs(inputs, outputs, asked, kind):
    assert told(model(inputs, outputs), Asked(**asked))[0] == kind


def test_states_are_outputs_that_the_next_call_takes():
    caches = model("t:int64[t]; k[3,past,64]; v[3,past,64]", "y[100]; a[3,past + t,64]; b[3,past + t,64]")
    assert caches.states == (State(1, 1, (3, 0, 64)), State(2, 2, (3, 0, 64)))
    assert model("x[n,s]; s[2,n,128]", "y[n,1]; z[2,n,128]").states == (State(1, 1, (2, 1, 128)),)
    assert model("x[n,8]", "y[n,8]").states == ()


@pytest.mark.parametrize("outputs, labels, want", [
    ("y[1,84,8400]", 80, Boxes("rows", "centre", True, False)),
    ("y[1,25200,85]", 80, Boxes("rows", "centre", False, True)),
    ("y[1,25200,85]", 0, Boxes("rows", "centre", False, True)),
    ("y[1,300,6]", 80, Boxes("finished", "corners")),
    ("y[1,1,h,w]", 0, Boxes("map", "corners")),
    ("l[1,100,92]; b[1,100,4]", 91, Boxes("lists", "centre", places=(1, 0, None))),
    ("b[1,10,4]; c[1,10]; s[1,10]; n[1]", 0, Boxes("lists", "rows first", places=(0, 2, 1))),
    ("b[n,4]; c:int64[n]; s[n]", 0, Boxes("lists", "corners", places=(0, 2, 1))),
    ("y[1,10]", 0, None), ("y[1,3,8,8]", 0, None),
])
def test_forms_of_boxes(outputs, labels, want):
    assert boxes_of(infos(outputs), labels) == want


def test_a_dictionary_may_leave_out_the_blank_and_the_space():
    assert letters(["a", "b"], 3) == ["", "a", "b"]
    assert letters(["a", "b"], 4) == ["", "a", "b", " "]
    assert letters(["-", "a"], 2) == ["", "a"]
    with pytest.raises(OptionError, match="2 letters are named"):
        letters(["a", "b"], 9)


def test_a_spectrogram_is_an_input_of_two_sizes():
    of = lambda text, form="log": of_input(*infos(text), parsed(form, 16000))
    for text, bands, first, frames in (("x[1,49,40]", 40, False, 49), ("x[n,80,3000]", 80, True, 3000), ("x[n,1,96,64]", 64, False, 96),
                                       ("x[1,t,40]", 40, False, "t"), ("x[n,40,t]", 40, True, "t"), ("x[49,40]", 40, False, 49)):
        mel, count = of(text)
        assert (mel.bands, mel.bands_first, count) == (bands, first, frames), text
    assert of("x[1,32,40]", "log,bands=40")[0].bands == 40
    assert of("x[1,16000]") is of("x[1,s,t]") is of("x:int64[49,40]") is of("x[2,3,4]") is None
    with pytest.raises(OptionError, match="13 bands, and the model takes"):
        of("x[1,49,40]", "log,bands=13")
    found = parsed("log", 16000)
    assert (found.window, found.hop, found.fft, found.high, found.samples(49)) == (400, 160, 512, 8000, 48 * 160 + 400)
    assert parsed("whisper", 16000).samples(3000) == 480000 and parsed("hop=80", 8000).window == 200


@pytest.mark.parametrize("text, message", [
    ("loud", "none of the known forms"), ("log,x=1", "has no 'x'"), ("log,hop=a", "hop is to be a whole number"), ("log,hop=0", "is no spectrogram"),
    ("log,scale=bark", "one of htk, slaney"), ("log,std=0", "is no spectrogram"), ("log,high=9000", "at most half of the rate"), ("log,low=nan", "a number"),
    ("log,window=100000", "is no spectrogram"), ("log,fft=100", "is no spectrogram"), ("log,hop=-1", "a whole number"), ("log,low", "low is to be a number"),
])
def test_forms_of_spectrograms_that_there_are_not(text, message):
    with pytest.raises(OptionError, match=f"(?s){message}"):
        parsed(text, 16000)


def test_models_of_spectrograms_are_of_sound_where_that_is_said():
    words = model("x[1,49,40]", "y[1,12]")
    assert told(words, Asked())[0] == "numbers"
    kind, facts = told(words, Asked(mel="log", overlap=4080))
    assert (kind, facts["sound"].window, facts["sound"].shape, facts["sound"].whole) == ("sound", 4000, (1, 49, 40), False)
    assert told(model("x[n,80,t]", "y[n,5]"), Asked(mel="whisper"))[1]["sound"].shape == (1, 80, 0)
    with pytest.raises(OptionError, match="49 frames are made of 8080"):
        told(words, Asked(mel="log", window=5))
    with pytest.raises(OptionError, match="no model for a page of the kind sound"):
        told(model("x[1,16000]", "y[1,35]"), Asked(mel="log", kind="sound"))


def test_windows_fit_the_model():
    assert told(model("x[1,576]; s[2,1,8]", "y[1,1]; z[2,1,8]"), Asked(overlap=64))[1]["sound"].window == 512
    with pytest.raises(OptionError, match="the model takes 576"):
        told(model("x[1,576]; s[2,1,8]", "y[1,1]; z[2,1,8]"), Asked(window=512))


def test_labels_come_from_the_file_the_metadata_or_beside_the_model(tmp_path):
    graph = onnx.helper.make_graph([], "g", [], [])
    file = onnx.helper.make_model(graph)
    (tmp_path / "config.json").write_text(json.dumps({"id2label": {"1": "good", "0": "bad"}}))
    onnx.save(file, tmp_path / "m.onnx")
    assert labels_for(tmp_path / "m.onnx", None) == ("bad", "good")
    for text in ("a\nb", "['a', 'b']", "{0: 'a', 1: 'b'}"):
        del file.metadata_props[:]
        onnx.helper.set_model_props(file, {"names": text})
        onnx.save(file, tmp_path / "m.onnx")
        assert labels_for(tmp_path / "m.onnx", None) == ("a", "b")
    (tmp_path / "l.txt").write_text("x\r\n\ny\n\n")
    assert labels_for(tmp_path / "m.onnx", tmp_path / "l.txt") == ("x", "", "y"), "each line is a class"
    (tmp_path / "l.txt").write_text("\n\r\n")
    with pytest.raises(OptionError, match="has no labels"):
        labels_for(tmp_path / "m.onnx", tmp_path / "l.txt")


@pytest.mark.parametrize("inputs, outputs, asked, counts", [
    ("x[n,3,8,8]", "y[n,10]", {}, (10,)), ("x[n,3,8,8]", "y[10]", {}, (10,)), ("x[n,8,8,3]", "y[n,1,1,7]", {}, (7,)), ("x[n,3,8,8]", "y[n,c]", {}, ()),
    ("x[1,3,640,640]", "y[1,84,8400]", {}, (80, 79)), ("x[1,3,h,w]", "l[1,100,92]; b[1,100,4]", {}, (92, 91)),
    ("x[1,3,h,w]", "b[n,4]; c:int64[n]; s[n]", {}, ()), ("x[1,1,16000]", "y[1,35]", {}, (35,)), ("x[n,784]", "y[n,10]", {}, ()),
    ("i:int64[n,s]; mask:int64[n,s]", "y[n,3]", {"tokenizer": WORDS}, (3,)),
])
def test_as_many_labels_as_classes(inputs, outputs, asked, counts):
    given = model(inputs, outputs)
    assert classes(*told(given, Asked(**asked))[:1], given, told(given, Asked(**asked))[1]) == counts
    if counts:
        with pytest.raises(OptionError, match=f"names 2 classes, and the model has {counts[0]}"):
            fitting(("a", "b"), counts, "l.txt")
        assert fitting(("a", "b"), counts, None) == ()
    assert fitting(("a",) * 80, counts and (80, 79), "l.txt") == ("a",) * 80


@pytest.mark.parametrize("kind, given, sample, message", [
    ("picture", {"window"}, None, "--window is not for a page of the kind picture"), ("sound", {"bgr"}, None, "it is for picture, detection, recognition"),
    ("numbers", {"sample"}, "a.png", "it is for"), ("picture", {"sample"}, "a.wav", "a.wav is no picture"), ("sound", {"sample"}, "a.PNG", "is no sound"),
    ("embedding", {"template"}, None, "it is for generation"), ("numbers", {"tokenizer"}, None, "it is for text"),
])
def test_options_fit_the_kind(kind, given, sample, message):
    with pytest.raises(OptionError, match=message):
        check_used(kind, given, sample)
    check_used("recognition", {"sample", "size"}, "a.JPG")


def test_what_takes_tokens_asks_for_what_makes_them():
    takes = lambda inputs: wants_tokenizer("numbers", model(inputs, "y[n,3]"), Asked())
    assert takes("input_ids:int64[n,s]; attention_mask:int64[n,s]") and takes("token_ids:int64[s]")
    assert not takes("x[n,4]") and not takes("x:int64[n,4]")


@pytest.mark.parametrize("content", ["", "[1]", "{}", '{"model": {"vocab": 3}}', "[" * 100000])
def test_what_is_no_tokenizer_is_refused(content, tmp_path):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(OptionError, match="is no tokenizer"):
        tokenizer_for(tmp_path / "m.onnx", None)


def test_the_tokenizer_of_a_gguf_file_is_that_of_the_library():
    tokenizers = pytest.importorskip("tokenizers")
    tokens = ["<|end|>", *(chr(c) for c in range(33, 127)), "Ġ", "th", "Ġth", "the"]
    facts = {"model": "gpt2", "pre": "smollm", "tokens": tokens, "merges": ["t h", "Ġ th", "th e"], "eos_token_id": 0,
             "token_type": [3] + [1] * (len(tokens) - 1)}
    found = of_gguf({f"tokenizer.ggml.{name}": value for name, value in facts.items()})
    assert found.pop("ends") == [0]
    library = tokenizers.Tokenizer.from_str(json.dumps(found))
    assert [tokens[k] for k in library.encode("the th 12<|end|>").ids] == ["the", "Ġth", "Ġ", "1", "2", "<|end|>"]
    assert of_gguf({"tokenizer.ggml.model": "llama"}) is None
