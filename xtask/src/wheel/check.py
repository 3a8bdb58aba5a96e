"""The module as users have it: in a wheel around a program that is already built, in a virtual
environment of its own.

Arguments: the root of the project, the program `goodput`, a scratch folder, and a cache for mypy.
The Python that runs this has pip, mypy, and the packages that read tables.
"""

import base64
import csv
import hashlib
import io
import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

ROOT, PROGRAM, SCRATCH, CACHE = map(Path, sys.argv[1:])
PYTHON = SCRATCH / "venv/bin/python"
TESTS = ROOT / "python/tests"
# Nothing of this machine's owner, and not the program of another installation.
ENVIRONMENT = {
    "PATH": os.defpath,
    "HOME": str(SCRATCH),
    "LC_ALL": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def pack():
    """A wheel like the one that maturin makes. Not compressed: it is read once."""
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
    # goodput 0.1.0 (…)
    version = subprocess.check_output([PROGRAM, "--version"], text=True).split()[1]
    name = f"{project['name'].replace('-', '_')}-{version}"
    extras = project["optional-dependencies"].items()
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Requires-Python: {project['requires-python']}",
        *[f"Provides-Extra: {extra}" for extra, _ in extras],
        *[f'Requires-Dist: {one}; extra == "{extra}"' for extra, all in extras for one in all],
    ]
    source = ROOT / "python/src"
    files = {
        str(path.relative_to(source)): path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    program = f"{name}.data/scripts/goodput"
    files[program] = PROGRAM.read_bytes()
    files[f"{name}.dist-info/METADATA"] = "\n".join([*metadata, ""]).encode()
    files[f"{name}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: check\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
    )
    record = io.StringIO()
    rows = csv.writer(record)
    path = SCRATCH / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            rows.writerow([file, f"sha256={digest.decode()}", len(content)])
            entry = zipfile.ZipInfo(file)
            entry.external_attr = (0o100755 if file == program else 0o100644) << 16
            wheel.writestr(entry, content)
        rows.writerow([f"{name}.dist-info/RECORD", "", ""])
        wheel.writestr(zipfile.ZipInfo(f"{name}.dist-info/RECORD"), record.getvalue())
    return path


def run(what, *command):
    """Ends the check where a command fails, with what it printed."""
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ended = subprocess.run(command, cwd=SCRATCH, env=ENVIRONMENT, **kept)
    if ended.returncode != 0:
        sys.exit(f"{ended.stdout.decode(errors='replace')}\n{what} failed")


def main():
    wheel = pack()
    run("venv", sys.executable, "-m", "venv", "--without-pip", PYTHON.parents[1])
    pip = [sys.executable, "-m", "pip", "-q", "--python", PYTHON, "install", "--no-index"]
    run("the installation", *pip, "--no-compile", wheel)
    only_standard = (
        "import goodput, sys\n"
        "others = {'pyarrow', 'pandas', 'polars', 'numpy', 'IPython'} & set(sys.modules)\n"
        "assert not others and goodput.__version__ != 'unknown', others\n"
    )
    run("the import without other packages", PYTHON, "-c", only_standard)
    # From here on the packages of this Python can be imported there too.
    site = Path(
        subprocess.check_output(
            [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip()
    )
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", PYTHON]
    typed = subprocess.Popen(
        [*mypy, "--no-error-summary", "--cache-dir", CACHE, "-p", "goodput", "-m", "usage"],
        cwd=SCRATCH,
        env={**ENVIRONMENT, "MYPYPATH": str(TESTS)},
    )
    run("python/tests", PYTHON, "-m", "unittest", "discover", "-q", "-s", TESTS)
    if typed.wait() != 0:
        sys.exit("mypy --strict failed")


main()
