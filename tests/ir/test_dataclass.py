# SPDX-License-Identifier: Apache-2.0
"""The cheap decorator makes what the standard one makes."""

import dataclasses
import inspect
import pickle
from dataclasses import field
from functools import cached_property

import pytest

from roundel.ir.dataclass import dataclass

OPTIONS = [{}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}, {"frozen": True, "repr": False}, {"slots": True}]


def _classes(decorate, options):
    @decorate(**options)
    class Point:
        x: int
        y: "int | None" = None
        names: list = field(default_factory=list, compare=False)
        hidden: float = field(default=0.5, repr=False, hash=False)
        later: int = field(default=3, init=False)

        def __post_init__(self):
            object.__setattr__(self, "later", self.x + 1)

    @decorate(**options)
    class Point3(Point):
        z: int = 7

        @property
        def height(self):
            return self.z

    @decorate(**options)
    class Empty:
        """Has no field."""

    return Point, Point3, Empty


def _told(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error).split(" object")[0].rsplit(".", 1)[-1]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_classes_are_those_of_the_standard_library(options):
    def seen(decorate):
        point, point3, empty = _classes(decorate, options)
        a, b, c = point(1), point(1, names=["n"]), point3(1, 2, z=4)
        for bad in (lambda: point(), lambda: point(1, 2, [], 0.5, 9), lambda: point3(nothing=1)):
            yield _told(bad)
        yield [a == b, a == c, a == 1, a != b, c == point3(1, 2, z=4), empty() == empty(), point.__eq__(a, 1) is NotImplemented]
        yield [repr(o).split("<locals>.")[-1] if options.get("repr", True) else None for o in (a, b, c, empty())]
        yield [point.__hash__ is None, hash(a) == hash(b) if options.get("frozen") else None, len({a, b, c}) if point.__hash__ else 0]
        yield [str(inspect.signature(k)) for k in (point, point3, empty)]
        yield [[(f.name, f.init, f.compare) for f in dataclasses.fields(k)] for k in (point, point3, empty)]
        yield c.height, dataclasses.asdict(dataclasses.replace(c, x=8)), dataclasses.astuple(c), point3.__match_args__, a.later
        for change in (lambda: setattr(c, "x", 2), lambda: setattr(a, "other", 2), lambda: delattr(c, "z")):
            yield _told(change)

    assert list(seen(dataclass)) == list(seen(dataclasses.dataclass))


@dataclass(frozen=True)
class Kept:
    """For pickles, which find it by its name."""

    value: tuple

    @cached_property
    def size(self):
        return len(self.value)

    def __hash__(self):
        return 5


def test_instances_are_kept_and_remember():
    one = Kept((1, 2))
    assert one.size == 2 and pickle.loads(pickle.dumps(one)) == one and hash(one) == 5
    with pytest.raises(dataclasses.FrozenInstanceError, match="value"):
        one.value = ()
