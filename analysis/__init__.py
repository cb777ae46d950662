"""Facts about IR that change nothing: interpreter, liveness, iteration spaces, costs."""
