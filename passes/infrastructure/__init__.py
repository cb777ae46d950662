"""Run passes: registry, options, textual pipelines, the manager, reproducers."""
