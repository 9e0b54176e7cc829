# SPDX-License-Identifier: Apache-2.0
"""The program that the lab's kernel starts: what has to be there before the first import, then first_process.py.

Every file that a lab opens is looked up and opened on the machine as well, so modules come from one file, which
TESTCTL_CODE names (testctl/lab/boot_code.py makes it); Python was started with -S then, and `site` is imported only for
a module that is not in it.  Without that file, modules are found as ever.  In mode "point", TESTCTL_STEPS names a
directory: a file is made in it when a step of the start has ended, because the time stamp of such a file is the
machine's.  The root is the machine's, read-only, so that directory is mounted first.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any


class BootCode:
    """Finds and loads modules: an index {name: (what, where, file, package)}, and bytecode behind it.

    what  "code": of `where`, (offset, bytes); "library": of the file; "none": there is no such module here; "methods":
          those of data classes, {text: code}, which Python would compile anew
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._begin = 8 + int.from_bytes(os.pread(self._file, 8, 0), "little")
        self._index: dict[str, Any] = marshal.loads(os.pread(self._file, self._begin - 8, 8))

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        what, _, file, package = self._index.get(name, ("", None, "", False))
        if what == "none":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if what == "library":
            return ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
        if what == "code":
            spec = ModuleSpec(name, self, origin=file, is_package=package)  # type: ignore[arg-type]  # it is no Loader by name
            spec.has_location = True
            if spec.submodule_search_locations is not None:
                spec.submodule_search_locations.append(os.path.dirname(file))
            return spec
        if "site" not in sys.modules:
            from early import step_ended

            step_ended("site")
            import site

            site.main()
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """As Python makes it."""

    def exec_module(self, module: ModuleType) -> None:
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> CodeType:
        code: CodeType = self._read(name)
        return code

    def _read(self, name: str) -> Any:
        offset, length = self._index[name][1]
        return marshal.loads(os.pread(self._file, length, self._begin + offset))

    def bring_methods(self) -> None:
        """Those of data classes."""
        import dataclasses

        methods = self._read("methods of data classes")
        dataclasses.exec = lambda text, *places: exec(methods.get(text, text), *places)  # type: ignore[attr-defined]


def main() -> None:
    path = os.environ.get("TESTCTL_CODE")
    code = BootCode(path) if path else None
    if code:
        builtin_and_frozen = 2
        sys.meta_path.insert(builtin_and_frozen, code)
    from early import fill_memory, mount_writable, step_ended

    fill_memory()

    if steps := os.environ.get("TESTCTL_STEPS"):
        mount_writable(steps)
        step_ended("interpreter")
    if code:
        code.bring_methods()
    import first_process

    step_ended("imports")
    first_process.run_and_power_off()


if __name__ == "__main__":
    main()
