# SPDX-License-Identifier: Apache-2.0
"""The library of native_module.py in process and as a shipped file."""

from __future__ import annotations

import json

import pytest

from roundel.build.link import link
from roundel.runtime import Executable, metadata
from runtime.native_module import WEIGHT, compile_module, graph_info, load_in_process


@pytest.fixture(scope="session")
def in_process(tmp_path_factory):
    return load_in_process(tmp_path_factory.mktemp("module"))


@pytest.fixture(scope="session")
def programs(in_process):
    """Every function as a tensor program: inputs, then outputs."""
    return Executable.from_address(in_process[1], constants=[WEIGHT], keep=in_process[0], threads=2)


@pytest.fixture(scope="session")
def graphs(in_process):
    """Every function as a graph function, which returns its results."""
    return Executable.from_address(
        in_process[1], constants=[WEIGHT], keep=in_process[0], metadata_text=metadata.dump(graph_info()), threads=2
    )


@pytest.fixture(scope="session")
def shipped(tmp_path_factory):
    """The module as a file that depends on nothing."""
    folder = tmp_path_factory.mktemp("shipped")
    text = metadata.dump([f for f in graph_info() if f.name != "update"], origin="test")
    (folder / "metadata.h").write_text(f"static const char metadata[] = {json.dumps(text)};\n")
    code = compile_module(folder, f'-DMETADATA="{folder}/metadata.h"').read_bytes()
    return link(
        [code], WEIGHT.tobytes(), folder / "tiny-model.so", functions=["scale", "concat", "fill", "callback"]
    )
