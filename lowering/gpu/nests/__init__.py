"""Loop nests spread over threads: by points, by rows of a block, by wide accesses."""
