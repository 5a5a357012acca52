"""What the checker says, as the plain data of its --json."""

from __future__ import annotations

from typing import Any

import onelayer_checker


def Options(engine: str = "numpy", escalate: bool = False, jobs: int = 1, bits: int = 128) -> dict[str, Any]:
    return {"engine": engine, "escalate": escalate, "jobs": jobs, "bits": bits}


def check(folder: Any, options: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return onelayer_checker.check(folder, **(options or {}), **more).to_json()


def assert_not_verified(folder: Any) -> None:
    """By no engine, and not with more precision either."""
    for options in (Options(), Options("arb"), Options("both"), Options(escalate=True)):
        verdict = check(folder, options=options)
        assert verdict["result"] in ("UNKNOWN", "NOT VERIFIED"), (options, verdict)
