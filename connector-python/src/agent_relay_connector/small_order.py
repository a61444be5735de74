"""Points of the two curves that no key may be: whose order divides 8, in any encoding."""

_FIELD_PRIME = 2**255 - 19

# y of such points of Ed25519: under such a key one signature is valid for any message.
_SMALL_ORDER_Y = {
    0,
    1,
    _FIELD_PRIME - 1,
    0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
    0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
}

# u of such points of X25519: with one, what two sides agree on is known to all. Source: RFC 7748, section 6.1.
_SMALL_ORDER_U = {
    0,
    1,
    _FIELD_PRIME - 1,
    0x00B8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0,
    0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F,
}


def is_small_order_ed25519(point: bytes) -> bool:
    """True also for a y at or above the prime, for either sign of x: a second encoding of a smaller y."""
    y = int.from_bytes(point, "little") & (2**255 - 1)
    return y >= _FIELD_PRIME or y in _SMALL_ORDER_Y


def is_small_order_x25519(point: bytes) -> bool:
    """True also for a u at or above the prime: a second encoding of a smaller u."""
    u = int.from_bytes(point, "little")
    return u >= _FIELD_PRIME or u in _SMALL_ORDER_U
