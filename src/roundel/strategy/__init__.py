# SPDX-License-Identifier: Apache-2.0
"""What can become of a tensor program, what each choice is expected to cost, and which one is taken."""

from .candidates import Candidates, combinations
from .choose import Alternative, choose
from .pins import pin
from .program import Program, is_unscheduled
from .rules import register, unregister
from .schedule_module import schedule_module, schedule_program
from .sketch import Applied, Rule, Sketch, rule
from .template import from_open, template

__all__ = [
    "Alternative", "Applied", "Candidates", "Program", "Rule", "Sketch", "choose", "combinations", "from_open", "is_unscheduled", "pin", "register", "rule",
    "schedule_module", "schedule_program", "template", "unregister",
]
