"""Setting B: the switchable scorer chooses the KV-cache pages that a decode step reads.

A page of the key-value cache is a document: its features are what its attention heads see of it
(study, section 9). Modules:

* `settings`: what a study fixes, the rules under test, the budget;
* `summaries`: element-wise extremes of keys over pages, and Quest's bound from them;
* `selectors`: one file per rule that chooses pages;
* `prefill`, `calibration`: the dense pass over a context and what it shows;
* `session`: decoding of many rules as one batch over one prefilled context;
* `attention`: the hook into transformers; `storage`: pages of keys and values;
* `rankings`: how the eight configurations rank the same pages, without a label.
"""
