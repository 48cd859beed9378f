"""``python -m tests.mutations``: plants faults and names the law that catches each.

Every fault must be caught under every seed, and every law must hold of the sources as they are.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.mutations.faults import FAULTS
from tests.mutations.run import WrongFault, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="names of faults (all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--jobs", type=int, default=2, help="laws that are asked at a time (2)")
    parser.add_argument("--list", action="store_true", help="name the faults and end")
    options = parser.parse_args()
    known = {fault.name: fault for fault in FAULTS}
    if options.list:
        for fault in FAULTS:
            print(f"{fault.name:30} {fault.file}")
        return 0
    unknown = [name for name in options.faults if name not in known]
    if unknown:
        parser.error(f"no fault {', '.join(unknown)}: one of {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(options.faults)] or list(FAULTS)
    seeds, started = list(dict.fromkeys(options.seeds)), time.perf_counter()
    try:
        controls, found = run(
            chosen, seeds, options.jobs, lambda line: print(line, file=sys.stderr, flush=True)
        )
    except WrongFault as problem:
        print(f"error {problem}", file=sys.stderr)
        return 2
    good = True
    print("| fault | file | caught by | seeds | seconds | built |")
    print("| --- | --- | --- | --- | --- | --- |")
    for fault, asked in found.items():
        good &= not asked.problem and asked.caught == len(seeds)
        right = controls[fault.law].built
        built = f"{asked.built}, as it is {right.rpartition(' ')[2]}" if right else ""
        good &= not right or asked.built != right
        by = ", ".join(asked.caught_by) or asked.problem or "NOTHING"
        seen = f"{asked.caught} of {len(seeds)}"
        print(f"| {fault.name} | {fault.file} | {by} | {seen} | {asked.seconds:.0f} | {built} |")
    for law, asked in controls.items():
        if asked.problem or asked.caught:
            good = False
            print(f"as it is, {law} fails: {asked.problem or asked.broken}")
    print(f"{len(found)} faults, seeds {seeds}, {time.perf_counter() - started:.0f} seconds")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
