"""The version of this package, and whether the relay hands out a newer one."""

import re

# That of pyproject.toml, and of the connector for TypeScript.
VERSION = "0.1.0"

# Source: Semantic Versioning 2.0.0.
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:-[0-9A-Za-z.-]{1,64})?")


def is_outdated(offered: str | None, own: str = VERSION) -> bool:
    """Compares numbers alone: the digest in `hello` is that of the package for npm, whose content is another."""
    theirs, ours = _numbers_of(offered or ""), _numbers_of(own)
    return theirs is not None and ours is not None and theirs > ours


def _numbers_of(version: str) -> tuple[int, ...] | None:
    found = _VERSION.fullmatch(version)
    return None if found is None else tuple(int(number) for number in found.groups())
