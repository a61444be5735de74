"""What work costs, however fast the machine is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any


@contextmanager
def counted_lines(*modules: ModuleType) -> Iterator[list[int]]:
    """Its first item is how many lines of these modules have run since: each item that a loop goes over is at least one."""
    files = {module.__file__ for module in modules}
    count = [0]

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        count[0] += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)
