# SPDX-License-Identifier: Apache-2.0
"""pyarrow does not import pandas, which takes long, and has it for who asks for it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import testctl.records
import testctl.execution.point
import numpy as np
import pyarrow as pa

pa.array(np.arange(3)).to_numpy()
pa.array(["a", None])
pa.schema([("a", pa.int64())]).empty_table()
print("pandas" in sys.modules)
{imports}
print(pa.table({{"a": [1.5, None]}}).to_pandas()["a"].tolist())
import pandas as pd

print(pa.array(pd.Series([1.5, None])).to_pylist())
many = pd.DataFrame({{"a": ["x", None], "b": pd.to_datetime(["2026-01-01", None]), "c": pd.Categorical(["u", "v"])}})
print([str(one.type) for one in pa.Table.from_pandas(many).columns[1:]])
print(pa.Table.from_pandas(many).column(0).to_pylist())
"""


def output(imports: str) -> list[str]:
    argv = [sys.executable, "-c", PROGRAM.format(imports=imports)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def test_only_who_asks_for_it_imports_it() -> None:
    """Whether pyarrow asks for it or the program."""
    types = "['timestamp[us]', 'dictionary<values=large_string, indices=int8, ordered=0>']"
    for imports in ("", "import pandas"):
        assert output(imports) == ["False", "[1.5, nan]", "[1.5, None]", types, "['x', None]"]
