"""Compares what braid emits with the committed record, kernel by kernel and file by file.

``python -m benchmarks.emitted`` checks small models for every target, and the models of one
operator and of decoding; with ``--models DIR`` every ``.onnx`` file in DIR too, as
``python -m benchmarks.models.make DIR`` writes them. ``--small`` checks what the tests check.
Words select cases whose names contain one of them: ``bert_base gpu-h100 "host x86-64-v4"``.
The exit status is 1 if anything differs. ``--keep DIR`` writes what is emitted to files, so that
``diff -r`` shows what has changed. ``--record`` writes the record anew for the cases that are run.

A digest covers the input of a code generator, so that it does not depend on LLVM: the kernels of
CPUs and GPUs in upstream dialects (these with their launches), the host program with the offsets of
buffers and the order of kernels, the descriptor of the model, the computation of `@prepare` on
weights, streams of chips, HLS C++ and SystemVerilog. For some small models there are also digests
of objects, PTX and streams in bytes, which hold for one version of llvmlite.

Nothing of this machine has a part in it: CPUs are named, two cores are assumed, there are no
records, and orders are not searched for a time.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.arguments import count, no_case
from benchmarks.emitted.isolation import isolated_environment
from benchmarks.emitted.record import RECORD, Emitted, differences, present_versions, read_record


def parsed() -> argparse.Namespace:
    """Return what the command was told."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="parts of names of cases")
    parser.add_argument("--models", type=Path, help="directory of .onnx files")
    parser.add_argument("--small", action="store_true", help="only what the tests check")
    parser.add_argument("--jobs", type=count, default=2, help="processes")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write what is emitted to files")
    parser.add_argument("--record", action="store_true", help="write the record anew")
    return parser.parse_args()


def main() -> int:
    """Run as a program."""
    arguments = parsed()
    with isolated_environment():
        from benchmarks.emitted.cases import cases, names_of, selected_cases, small_cases
        from benchmarks.emitted.run import run_cases

        every = list(small_cases() if arguments.small else cases(names_of(arguments.models)))
        chosen = selected_cases(every, arguments.words)
        if not chosen:
            print(no_case(" ".join(arguments.words), [str(case) for case in every]))
            return 2
        record, found, wrong = read_record(), dict[str, Emitted](), 0
        for case, outcome in run_cases(chosen, arguments.models, arguments.keep, arguments.jobs):
            name = str(case)
            if isinstance(outcome, str):
                lines = [f"{name}: crashed\n{outcome}"]
            else:
                found[name] = outcome
                lines = list(differences(name, record.cases.get(name), outcome))
            wrong += bool(lines)
            print("".join(f"{line}\n" for line in lines), end="", flush=True)
    if arguments.record:
        RECORD.write_text(record.with_cases(found).text(), encoding="utf-8")
        return int(len(found) < len(chosen))
    if wrong and record.versions != present_versions():
        print(f"the record was made with {record.versions}, this is {present_versions()}")
    print(f"{wrong} of {len(chosen)} cases differ from the record")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
