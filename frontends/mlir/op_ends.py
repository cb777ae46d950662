"""Find the end of an op that cannot be parsed, by brackets, lines and indentation."""

import re

_OP_BEGINS = re.compile(
    r"(?:%[\w$.-]+(?::[0-9]+)?[ \t]*(?:,[ \t]*%[\w$.-]+(?::[0-9]+)?[ \t]*)*=(?!=)"
    r'|[A-Za-z_][\w$]*(?:\.[\w$.]+|\b(?=[ \t]*(?:[%@{(]|$)))|"[^"\n]+"[ \t]*\()',
    re.ASCII | re.MULTILINE,
)
_ALIAS_BEGINS = re.compile(r"[!#][\w$.-]+[ \t]*=")
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|[(\[{<]|[)\]}>]|\n')
_COMMENT = re.compile(r"//[^\n]*")
_INDENTATION = re.compile(r"[ \t]*")
_WORD = re.compile(r'[%@^#!]?"?[\w$.-]+"?')


def end_of_op(text: str, start: int, is_outermost: bool) -> int:
    """Return the position after the op at `start`: of the next op, or of the end of its block.

    Half an op may open brackets that nothing closes. It ends where a line begins an op and is not
    indented more than its own. `is_outermost` says that no block is around it.
    """
    own = _indentation(text, text.rfind("\n", 0, start) + 1)
    depth = 0
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token in "([{<":
            depth += 1
        elif token in ")]}>":
            depth -= 1
            if depth < 0 and token == "}" and not is_outermost:
                return match.start()
            depth = max(depth, 0)
        elif token == "\n":
            begin = match.end()
            indentation = _indentation(text, begin)
            place = begin + indentation
            if text.startswith("}", place) and depth > 0:
                if indentation < own:
                    return place
                if indentation == own:
                    depth = 1  # which this bracket closes
            elif depth == 0 or indentation <= own:
                if _OP_BEGINS.match(text, place) or text.startswith("^", place):
                    return place
                if not indentation and _ALIAS_BEGINS.match(text, place):
                    return place
    return len(text)


def shown_range(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range of a diagnostic, which has at least one character if `text` has any."""
    if end > start:
        return start, end
    if start >= len(text):
        last = len(text.rstrip())
        return max(last - 1, 0), last
    word = _WORD.match(text, start)
    return start, word.end() if word is not None else start + 1


def end_of_code(text: str, start: int, end: int) -> int:
    """Return where `text` from `start` to `end` ends without the blanks and comments at its end."""
    while end > start:
        line = max(text.rfind("\n", 0, end) + 1, start)
        code = _COMMENT.sub("", text[line:end]).rstrip()
        if code:
            return line + len(code)
        end = line - 1
    return start + 1


def _indentation(text: str, line: int) -> int:
    match = _INDENTATION.match(text, line)
    assert match is not None, "the pattern matches nothing too"
    return match.end() - line
