"""The debugger: a session without a screen, and its user interfaces for people and scripts.

`session.Session` is the model: methods that travel, stop and inspect.  `commands` are its text
commands; the prompt, scripts and other front ends are thin clients of the two.
"""

from rvm_tools.debug.session import Session
from rvm_tools.debug.stops import Breakpoint, Stop, Watchpoint

__all__ = ["Breakpoint", "Session", "Stop", "Watchpoint"]
