"""Exact search over all configurations at once: the parts behind `whencount.search`."""
