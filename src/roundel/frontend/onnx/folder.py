# SPDX-License-Identifier: Apache-2.0
"""Where the external data of a model may lie: in the model's folder, as it is written and as it is stored.

A location is a relative path without ``..``. What it names may be a symbolic link, as in the folders of Hugging Face's library, where the
model and its data are links into one store. The file behind the link must then lie in the folder of the model's own file, or below it:
a model from elsewhere may come with links to files that are none of its business, and what is read becomes part of the result.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from ...ir.dataclass import dataclass
from ...ir.errors import ModelError


@dataclass(frozen=True)
class ModelFolder:
    """``written``: the folder in which the model was named; ``stored``: that of its file behind all links."""

    written: Path
    stored: Path

    @staticmethod
    def of(model: Path) -> ModelFolder:
        """The folder of a model's file."""
        return ModelFolder(model.absolute().parent, Path(os.path.realpath(model)).parent)

    def find(self, location: str, where: Any = None) -> Path:
        """The regular file that a location names; raises ModelError."""
        if not location or os.path.isabs(location) or ".." in (*PurePosixPath(location).parts, *PureWindowsPath(location).parts):
            raise self._outside(location, where)
        path = self.written / location
        try:
            path = self.written / os.fsdecode(location.encode())  # its bytes are UTF-8, whatever the names of files are taken for here
            real = Path(os.path.realpath(path, strict=True))
            if not any(real.is_relative_to(folder) for folder in (os.path.realpath(self.written), self.stored)):
                raise self._outside(location, where)
            if not real.is_file():
                raise ModelError("the external data is no regular file", where=where, why=str(path))
        except (FileNotFoundError, NotADirectoryError):
            raise ModelError("the external data file is missing", where=where, why=str(path)) from None
        except (OSError, ValueError) as error:  # a loop of links, a zero byte, a name that is too long
            raise ModelError("the external data cannot be read", where=where, why=f"its location is {location[:200]!r}: "
                             f"{getattr(error, 'strerror', None) or error}") from None
        return real

    @staticmethod
    def _outside(location: str, where: Any) -> ModelError:
        return ModelError("the external data file lies outside the model's folder", where=where, why=f"its location is {location!r}",
                          hint="external data must be beside the model, for safety; behind symbolic links, beside the model's own file")
