"""Requests to a memory that is read word by word, again and again: how long, and how many ahead."""

MOST_BEATS = 256
"""The most beats of a burst of AXI4."""
BURST_BYTES = 4096
"""The bytes within which a burst of AXI4 stays: none crosses a multiple of this address."""
LEAST_PORT = 32
"""Bits of the narrowest port that is made."""
_GOOD_BURST = 1024
"""Bytes of a burst beyond which longer ones gain little, and take memory."""


def port_bits(word: int) -> int:
    """Return the bits of a port for words of `bits` bits: a power of two."""
    return max(LEAST_PORT, 1 << (word - 1).bit_length())


def burst_words(words: int, port: int) -> int:
    """Return the words of a burst: a power of two, at most what `words` words need."""
    most = min(MOST_BEATS, max(_GOOD_BURST * 8 // port, 1))
    return min(most, 1 << (words - 1).bit_length())


def bursts_ahead(words: int, burst: int, latency: int) -> int:
    """Return the fewest requests with which a word can be taken in each cycle, after the first one.

    `words` are read in bursts, the last of them short, and then again. A request is made in the
    cycle after the last word of a burst was taken, if this many bursts were asked for and not
    taken; its first word comes `latency` cycles later, and can be taken in the cycle after. Until
    then the words of the other bursts have to last, whichever these are.
    """
    whole, rest = divmod(words, burst)
    lengths = [burst] * whole + [rest] * bool(rest)
    passes, needed = divmod(latency + 1, words)
    worst = 0
    # Bursts at the beginning are whole; the short one is the last.
    for first in {0, *range(max(len(lengths) - needed // burst - 2, 0), len(lengths))}:
        held = taken = 0
        while held < needed:
            held += lengths[(first + taken) % len(lengths)]
            taken += 1
        worst = max(worst, taken)
    return 1 + passes * len(lengths) + worst
