"""The passes of this package by name, one line each, sorted; loaded when they are used."""

PASSES: dict[str, str] = {
    "measure-order": "braid.tuning.measure_order:MeasureOrderPass",
    "tune-schedules": "braid.tuning.tune_schedules:TuneSchedulesPass",
}
"""Name of the pass -> `module:class`."""
