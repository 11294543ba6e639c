"""Latent Terms: sparse codes of token states as the terms of an index (the study, section 12)."""
