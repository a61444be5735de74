"""The version of this package, and whether the relay hands out a newer one."""

import re

# Of this connector. Packages that a relay hands out have a digest in it, as in `1.0.0-b3f2a…`, which is also that of its
# package for npm; the sources have none.
VERSION = "1.0.0"

# Source: Semantic Versioning 2.0.0.
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:-([0-9A-Za-z.-]{1,64}))?")


def is_outdated(offered: str | None, own: str = VERSION) -> bool:
    """A higher number is newer, and so is another build of the same number: a relay's own packages are those that fit it.

    Sources are no build, and are not compared with one. offered: what `hello` says.
    """
    theirs, ours = _VERSION.fullmatch(offered or ""), _VERSION.fullmatch(own)
    if theirs is None or ours is None:
        return False
    their_numbers, our_numbers = _numbers_of(theirs), _numbers_of(ours)
    if their_numbers != our_numbers:
        return their_numbers > our_numbers
    return theirs[4] is not None and ours[4] is not None and theirs[4] != ours[4]


def _numbers_of(version: "re.Match[str]") -> tuple[int, ...]:
    return tuple(int(version[n]) for n in (1, 2, 3))
