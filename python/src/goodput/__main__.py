"""``python -m goodput`` is the command ``goodput``."""

import os
import sys

from goodput._errors import MissingProgram
from goodput._program import program

try:
    path = program()
except MissingProgram as error:
    sys.exit(f"error: {error}")
os.execv(path, ["goodput", *sys.argv[1:]])
