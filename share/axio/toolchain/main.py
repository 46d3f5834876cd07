#!/usr/bin/env python3
"""The tools of the Axio emulator by weir: `weir axio tools` with the same words.

WEIR names the program where it is not on the PATH.
"""

import os
import sys

WEIR = os.environ.get("WEIR", "weir")

try:
    os.execvp(WEIR, [WEIR, "axio", "tools", *sys.argv[1:]])
except OSError as why:
    sys.exit(f"[ERROR] {WEIR}: {why.strerror} (WEIR=PROGRAM names another)")
