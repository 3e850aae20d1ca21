"""Reads the reference values in ``data/``: what other code bases compute for the same input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

DATA = Path(__file__).parent / "data"


def load(name: str) -> dict[str, Any]:
    """Read ``{"tensors": ..., "cases": [...]}`` of a technique."""
    content: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return content


def regression(name: str) -> dict[str, Any]:
    """Return the case of a bug that was reported elsewhere: inputs and right values."""
    (case,) = (case for case in load("regressions")["cases"] if case["id"] == name)
    found: dict[str, Any] = case
    return found


def tensor(described: dict[str, Any], dtype: str = "float64") -> Tensor:
    """Make a tensor; the texts "nan", "inf" and "-inf" stand for those numbers."""
    return torch.tensor(_numbers(described["data"]), dtype=getattr(torch, dtype))


def mask(described: dict[str, Any]) -> Tensor:
    """Make a bool tensor from zeros and ones."""
    return tensor(described).bool()


def _numbers(data: Any) -> Any:
    return [_numbers(item) for item in data] if isinstance(data, list) else float(data)
