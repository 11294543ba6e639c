"""Learned sparse vectors (SPLADE and SPLADE-doc), and what they cost at equal sizes."""
