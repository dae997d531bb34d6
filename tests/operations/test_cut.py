"""cut: what is promised of the output where a module returns more than a tensor."""

from __future__ import annotations

import pytest
import torch

from nbsurgery.session import Session


def test_an_output_object_is_not_the_one_tensor_in_it():
    """After an encoder that wraps its value, the cut model returns the wrapping: no false alarm."""
    tf = pytest.importorskip("transformers")
    config = tf.T5Config(
        d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, vocab_size=50, num_decoder_layers=1
    )
    torch.manual_seed(0)
    ids = torch.randint(0, 50, (2, 5))
    kwargs = {"input_ids": ids, "decoder_input_ids": ids[:, :3]}
    session = Session(tf.T5Model(config).eval(), (), kwargs, namespace={})
    session.do("cut", {"after": "encoder"})
    assert session.report.ok, str(session.report)
    found = session.build()(**kwargs)
    assert torch.equal(found.last_hidden_state, session.original.encoder(ids).last_hidden_state)
