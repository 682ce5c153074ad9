"""Every behaviour of the middleware holds in both forms."""

from typing import Any

import pytest


@pytest.fixture(params=["sync", "async"])
def how(request: pytest.FixtureRequest) -> Any:
    return request.param
