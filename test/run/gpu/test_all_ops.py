"""All tests of the CPU's fallback, on the GPU's."""

import pytest

from test.run.fallback.test_casts import *  # noqa: F403
from test.run.fallback.test_decomposed_ops import *  # noqa: F403
from test.run.fallback.test_elementwise import *  # noqa: F403
from test.run.fallback.test_ops import *  # noqa: F403
from test.run.fallback.test_random_groups import *  # noqa: F403
from test.run.fallback.test_top_k_extremes import *  # noqa: F403

pytestmark = pytest.mark.slow
