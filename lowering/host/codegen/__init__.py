"""From modules in upstream dialects to object code, which is cached, linked or loaded.

`compiler` is the way in; `workers` are the processes in which it compiles.
"""
