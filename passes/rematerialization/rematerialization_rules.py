"""Rules by which a recomputed op fuses with its reader; data, replaceable by the user."""

from dataclasses import dataclass
from pathlib import Path

from xdsl.ir import Operation

from braid.dialects.braid.opaque import OpaqueOp
from braid.passes.fusion.fusion_rules import kind_of, load_fusion_rules

DEFAULT_RULES = Path(__file__).with_name("rematerialization_rules.toml")


@dataclass(frozen=True)
class RematerializationRules:
    """`pairs` holds (kind of the producer, kind of the consumer), `anchors` costly kinds."""

    pairs: frozenset[tuple[str, str]]
    anchors: frozenset[str]

    def allow(self, producer: Operation, consumer: Operation) -> bool:
        """Return whether `producer` can be fused with `consumer`, which reads its result."""
        return (rule_kind(producer), rule_kind(consumer)) in self.pairs

    def is_anchor(self, op: Operation) -> bool:
        """Return whether a recomputed set may hold only one op such as `op`."""
        return rule_kind(op) in self.anchors


def rule_kind(op: Operation) -> str:
    """Return the kind of `op` in rules; an opaque op's is its own name."""
    return op.kind.data if isinstance(op, OpaqueOp) else kind_of(op)


def load_rules(name: str) -> RematerializationRules:
    """Return the rules in the TOML file `name`, or the default ones for `default`.

    Raises BraidError where the file cannot be read or is malformed.
    """
    path = DEFAULT_RULES if name == "default" else Path(name)
    rules = load_fusion_rules(path)
    return RematerializationRules(rules.pairs, rules.anchors)
