"""Render /metrics in the text format of Prometheus."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from braid.tools.service.storage import TaskQueue


class Metrics(Collector):
    """Counters of one server; the states of tasks are those of the queue."""

    def __init__(self, queue: TaskQueue) -> None:
        self._queue = queue
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self.refused = Counter(
            "braid_refused_requests_total",
            "Requests that were refused, by status.",
            ["status"],
            registry=self._registry,
        )
        self.uploaded = Counter(
            "braid_uploaded_bytes_total", "Bytes of models.", registry=self._registry
        )
        self.runs = Histogram(
            "braid_run_seconds", "Runs of artifacts, with their loading.", registry=self._registry
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the numbers of tasks."""
        tasks = GaugeMetricFamily("braid_tasks", "Tasks in each state.", labels=["state"])
        for state, count in self._queue.counts().items():
            tasks.add_metric([state], count)
        yield tasks

    def text(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)
