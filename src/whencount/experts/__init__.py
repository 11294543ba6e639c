"""Setting C: the switchable scorer chooses the experts of a mixture-of-experts model.

`routing.routed(model, rule)` puts a rule of `rules` in charge of every router of a model; the
chosen experts are mixed with their original gate weights. `calibration` measures what the rules
need, `preservation` which experts a model cannot lose, `statistics` what the routing shows without
labels, `reference` how near a rule comes to the dense mixture over all experts (study, section 10).
"""
