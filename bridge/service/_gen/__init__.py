"""Compiled from bridge.thrift by the Thrift compiler 0.17.0; not edited by hand.

`thrift --gen py:slots,enum -out .. bridge.thrift`. Exceptions are marked `python.immutable = "false"` there: the compiler
makes them immutable by default, and `contextlib` has to set `__traceback__` on what passes through it.
"""

__all__ = ["constants", "Planner", "ttypes"]
