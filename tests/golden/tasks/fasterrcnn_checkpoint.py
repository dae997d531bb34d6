from torch import nn
from torch.utils.checkpoint import checkpoint


class CheckpointedSequential(nn.Sequential):
    """Sequential whose activations are computed again in the backward pass."""

    def __call__(self, *args, **kwargs):
        return checkpoint(super().__call__, *args, use_reentrant=False, **kwargs)


# checkpoint backbone.body.layer1, backbone.body.layer2: less memory in training, one more forward
# pass there
for module in (model.backbone.body.layer1, model.backbone.body.layer2):
    module.__class__ = CheckpointedSequential
