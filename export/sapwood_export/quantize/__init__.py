"""Numbers to packed int4 and int8: exact repacking where it can be, rounding where it must."""
