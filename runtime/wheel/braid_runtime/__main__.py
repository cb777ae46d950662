"""`python -m braid_runtime`: what a C compiler needs to build a program that runs models."""

import argparse
import shlex

from braid_runtime import headers, library


def main() -> None:
    """Print the options that are asked for, quoted for a shell."""
    parser = argparse.ArgumentParser(prog="python -m braid_runtime", description=__doc__)
    parser.add_argument("--cflags", action="store_true", help="options that find the headers")
    parser.add_argument("--libs", action="store_true", help="options that link the library")
    asked = parser.parse_args()
    options: list[str] = []
    if asked.cflags:
        options.append(f"-I{headers()}")
    if asked.libs:
        options += [str(library()), f"-Wl,-rpath,{library().parent}"]
    print(shlex.join(options))


if __name__ == "__main__":
    main()
