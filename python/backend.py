"""Builds the wheel from source with maturin. What is missing for that is one clear line."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MATURIN = "maturin==1.16.0"
# Minutes instead of a quarter of an hour; published wheels have the profile of pyproject.toml.
ARGUMENTS = "--profile=release"


def get_requires_for_build_wheel(config_settings=None):
    problem = missing()
    if problem:
        sys.exit(f"goodput-bench: {problem}")
    return [MATURIN]


def get_requires_for_build_sdist(config_settings=None):
    return [MATURIN]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    os.environ.setdefault("MATURIN_PEP517_ARGS", ARGUMENTS)
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    import maturin

    return maturin.build_sdist(sdist_directory, config_settings)


def missing():
    """Why the program cannot be built here; None if it can."""
    if sys.platform != "linux":
        return (
            f"goodput runs on Linux, and this is {sys.platform}: use a container or a remote host"
        )
    wanted = oldest_rust()
    rust = f"Rust {wanted} or later (https://rustup.rs)"
    if not shutil.which("cargo"):
        return f"there is no wheel for this system, and cargo is missing: install {rust}"
    said = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout
    found = re.match(r"rustc (\d+\.\d+)", said)
    if not found or numbers(found[1]) < numbers(wanted):
        return f"{said.strip() or 'rustc'} is too old to build goodput: install {rust}"
    compiler = os.environ.get("CC", "cc").split()[0]
    if not shutil.which(compiler):
        return f"the C compiler `{compiler}` is missing: install gcc (`apt-get install gcc`)"
    return None


def oldest_rust():
    """What Cargo.toml asks for: next to this file in an sdist, above it in a checkout."""
    here = Path(__file__).resolve().parent
    manifests = (folder / "Cargo.toml" for folder in (here, here.parent))
    text = next(manifest for manifest in manifests if manifest.exists()).read_text()
    return re.search(r'^rust-version = "(.*)"', text, re.MULTILINE)[1]


def numbers(version):
    return [int(part) for part in version.split(".")]
