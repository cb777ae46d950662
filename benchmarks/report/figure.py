"""A bar chart as SVG: how many times as fast braid is as a peer."""

from collections.abc import Mapping
from html import escape

_WIDTH, _LABEL, _BAR, _STEP = 760, 190, 16, 24
_STYLE = (
    "text{font:13px sans-serif;fill:#222}.s{font-size:11px;fill:#555}.b{fill:#4a6fa5}"
    ".w{fill:#b9812f}.l{stroke:#555;stroke-dasharray:4 3}"
)


def chart(title: str, axis: str, bars: Mapping[str, float]) -> str:
    """Return the chart of the ratios in `bars`, by their labels, the largest first.

    Bars below 1, where the peer is faster, have another colour; a line marks 1.
    """
    top, height = 44, 60 + _STEP * len(bars)
    scale = (_WIDTH - _LABEL - 60) / max(bars.values())
    one = _LABEL + scale
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}"><style>{_STYLE}</style>',
        f'<text x="8" y="18">{escape(title)}</text>',
        f'<text class="s" x="{_LABEL}" y="35">{escape(axis)}</text>',
    ]
    for place, (label, ratio) in enumerate(sorted(bars.items(), key=lambda bar: -bar[1])):
        y, end = top + _STEP * place, _LABEL + scale * ratio
        kind = "b" if ratio >= 1 else "w"
        parts += [
            f'<text x="{_LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>',
            f'<rect class="{kind}" x="{_LABEL}" y="{y}" width="{end - _LABEL:.1f}" '
            f'height="{_BAR}" rx="2"/>',
            f'<text class="s" x="{end + 6:.1f}" y="{y + 12}">{ratio:.2f}×</text>',
        ]
    bottom = top + _STEP * len(bars)
    parts.append(f'<path class="l" d="M{one:.1f} {top - 4}V{bottom}"/></svg>')
    return "\n".join(parts) + "\n"
