"""The full report one check at a time: no trace in between, and a write in between is noticed."""

import random

import pytest
import torch
from torch import nn

from nbsurgery import verify
from nbsurgery.capture import capture
from nbsurgery.session import Session


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.Linear(4, 2)).train()


def checking(model):
    x = torch.randn(2, 3)
    built = verify.execute("model[2] = torch.nn.Linear(4, 5)", model, namespace={"torch": torch})
    after = verify.after(built, (x,))
    subject = verify.Subject(capture(model, (x,)), model, built, (after,), args=(x,))
    return verify.full_by_steps(subject)


def test_nothing_is_in_force_between_two_checks(model):
    """Random state, modes, gradients and hooks are the person's at each stop."""
    steps = checking(model)

    def state():
        return (
            torch.get_rng_state().tolist(), random.getstate(), torch.is_grad_enabled(),
            torch.get_default_dtype(), [m.training for m in model.modules()],
            [p.grad for p in model.parameters()], len(nn.modules.module._global_forward_hooks),
            len(nn.modules.module._global_forward_pre_hooks),
        )  # fmt: skip

    before, names = state(), []
    while True:
        try:
            progress = next(steps)
        except StopIteration as end:
            report = end.value
            break
        names.append(progress.name)
        assert progress.number == len(names)
        assert state() == before
    assert len(names) == progress.of and "train mode" in names
    assert report.ok and report.count("ok") > 5


def test_a_weight_written_between_two_checks_begins_them_again(model):
    """The runs made so far are of the weights as they were."""
    steps = checking(model)
    assert [next(steps).number for _ in range(3)] == [1, 2, 3]
    with torch.no_grad():
        model[0].weight.add_(1)
    assert [next(steps).number for _ in range(2)] == [1, 2]
    assert verify.finished(steps).ok


def test_the_exporter_is_told_to_hold_and_looks_at_the_original_once(model, monkeypatch):
    exported, export = [], torch.export.export

    def spy(module, *args, **kwargs):
        exported.append(module)
        return export(module, *args, **kwargs)

    monkeypatch.setattr(torch.export, "export", spy)
    session = Session(model, (torch.randn(2, 3),), namespace={})
    counts = []
    for new in ("nn.GELU()", "nn.SiLU()"):
        session.do("replace", {"where": "1", "new": new})
        held = [p.name for p in session.checking() if p.holds]
        assert held == ["export of the original", "export"]
        counts.append(len(exported))
    assert counts == [2, 3]
