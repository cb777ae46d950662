"""braid-opt with a search for orders that claims less than its order costs."""

import sys
from dataclasses import replace

from braid.passes.order.search_order import SubgraphSearch
from braid.tools.braid_opt import main

run = SubgraphSearch.run


def claiming_less(search):
    subgraphs, order = run(search)
    return subgraphs, replace(order, value=order.value * 0.5, lower_bound=0.0)


SubgraphSearch.run = claiming_less
sys.exit(main())
