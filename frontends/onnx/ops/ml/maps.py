"""`ZipMap` and `DictVectorizer`: rows of numbers that callers see as mappings."""

from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.movement import ReshapeOp
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.ml.scores import DOMAIN, rows_of


@importer("ZipMap", domain=DOMAIN)
def zip_map(b: Builder, node: Node) -> SSAValue:
    """Import rows whose columns have labels; the model's result is a list of mappings."""
    texts, numbers = node.texts("classlabels_strings", ()), node.integers("classlabels_int64s", ())
    if bool(texts) == bool(numbers):
        node.fail("expected one of classlabels_strings and classlabels_int64s")
    x = rows_of(b, node, node.input(0))
    labels = tuple(texts or numbers)
    columns = extents_of(x)[1]
    if columns != len(labels):
        node.fail(f"its input has {columns} columns, expected one for each of {len(labels)} labels")
    # A value of its own: the rows may be an output of the model, too.
    found = b.insert_one(ReshapeOp.get(x, extents_of(x)))
    b.texts.mark_rows(found, labels)
    return found


@importer("DictVectorizer", domain=DOMAIN)
def dict_vectorizer(b: Builder, node: Node) -> SSAValue:
    """Import the row that a mapping is given as, in the order of its keys."""
    node.texts("string_vocabulary", ())
    node.integers("int64_vocabulary", ())
    x = node.input(0)
    if b.texts.keys_of(x) is None:
        node.unsupported("its input is not a mapping that is an input of the model")
    return b.insert_one(ReshapeOp.get(x, extents_of(x)))
