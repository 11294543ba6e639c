"""Late interaction: texts as sets of token vectors, compared by MaxSim (ColBERT and its index)."""
