"""Tables that the program writes, as data frames of other packages."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from goodput._errors import MissingExtra

Format = Literal["arrow", "pandas", "polars"]


def load(path: Path, format: Format) -> Any:
    """A Parquet or CSV file as a ``pyarrow.Table``, or a data frame of pandas or polars."""
    is_csv = path.suffix == ".csv"
    if format == "arrow":
        if is_csv:
            return _package("pyarrow.csv", format).read_csv(path)
        return _package("pyarrow.parquet", format).read_table(path)
    if format == "pandas":
        if is_csv:
            return _package("pandas", format).read_csv(path)
        return _package("pandas", format).read_parquet(path)
    if format == "polars":
        polars = _package("polars", format)
        return polars.read_csv(path) if is_csv else polars.read_parquet(path)
    raise ValueError(f"format is 'arrow', 'pandas', or 'polars', not {format!r}")


def _package(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        hint = f"pip install 'goodput-bench[{extra}]'"
        raise MissingExtra(f"format {extra!r}: {error}", hint) from error
