# SPDX-License-Identifier: Apache-2.0
"""The exception of the package."""

from __future__ import annotations

KINDS = {1: "failure", 2: "usage", 3: "input", 4: "contract", 5: "environment", 6: "absent"}


class Error(Exception):
    """Why a file could not be read or a question not answered.

    `kind` is one of failure, usage, input, contract, environment, and absent: the recording does not tell, and the message says
    why. `hint` says what to do about it; it may be empty.
    """

    def __init__(self, message: str, hint: str = "", kind: str = "failure") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.kind = kind

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message
