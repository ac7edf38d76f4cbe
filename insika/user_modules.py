"""Imports the Python modules that a user names: tools, and whatever else an agent needs that is code.

Importing runs the user's code; nothing else here does. What is looked for in a module is the caller's affair.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

WHERE = "INSIKA_TOOLS"
"""The variable that names them, for errors."""


def module_names(given: str | Iterable[str]) -> list[str]:
    """One by one, in order, each once; a text may hold several, separated by commas."""
    texts = [given] if isinstance(given, str) else given
    stripped = (name.strip() for text in texts for name in text.split(","))
    return list(dict.fromkeys(name for name in stripped if name))


def import_module(name: str, base: Path) -> ModuleType:
    """`name` is a dotted module name or the path of a .py file, looked for in `base` too; the same one is imported
    once. Raises whatever importing it raises."""
    if name.endswith(".py"):
        return _import_file((base / Path(name).expanduser()).resolve())
    if str(base) not in sys.path:
        sys.path.append(str(base))  # last, so that nothing installed is hidden by a file that happens to lie here
    return importlib.import_module(name)


def _import_file(path: Path) -> ModuleType:
    module_name = f"insika_tools_{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # the types in it must be found by name while it is being read
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module
