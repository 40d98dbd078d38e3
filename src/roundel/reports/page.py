# SPDX-License-Identifier: Apache-2.0
"""The page of a report: one file of HTML that needs nothing else and sends nothing anywhere."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..ir.errors import OptionError
from .collect import FORMAT

_SCRIPTS = ("dom.js", "charts.js", "graph.js", "tuning.js", "kernels.js", "page.js")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_DATA = re.compile(r'<script type="application/json" id="report">(.*?)</script>', re.DOTALL)


def page(report: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """HTML of what `collect` gives; with ``before``, another report, the two are compared."""
    web = files(__package__) / "web"
    scripts = "\n".join((web / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    data = _data("report", report) + ("" if before is None else _data("before", before))
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>{escape(str(report["model"]))}: Roundel report</title>'
            f'<style>{(web / "page.css").read_text(encoding="utf-8")}</style></head><body>'
            f"<noscript>This page draws its tables by script, which is turned off.</noscript>{data}<script>{scripts}</script></body></html>\n")


def report_in(path: Path) -> dict[str, Any]:
    """The report that a page was made of. Raises OptionError for a file that is none, or of another format."""
    if not path.is_file():
        raise OptionError(f"there is no report {path}", hint="`roundel report MODEL -o report.html` writes one")
    found = _DATA.search(path.read_text(encoding="utf-8", errors="replace"))
    try:
        report = json.loads(found[1]) if found is not None else None
    except ValueError:
        report = None
    if not isinstance(report, dict) or "kernels" not in report:
        raise OptionError(f"{path.name} is no report", hint="`roundel report MODEL -o report.html` writes one")
    if report.get("format") != FORMAT:
        raise OptionError(f"{path.name} is a report of Roundel {report.get('roundel')}, of another format", hint="make it again with this version")
    return report


def _data(name: str, report: Mapping[str, Any]) -> str:
    """In a script element, where only its end and comments have a meaning; numbers that are not finite are null."""
    text = json.dumps(_finite(report), allow_nan=False, default=str).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list | tuple) else value
