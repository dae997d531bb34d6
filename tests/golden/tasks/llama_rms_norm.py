from torch import nn
from transformers.models.llama.modeling_llama import LlamaRMSNorm

# every LlamaRMSNorm → nn.RMSNorm(old.weight.numel(), eps=old.variance_epsilon): 5 modules, 5 calls;
# weight kept
for name, module in list(model.named_modules()):
    if isinstance(module, LlamaRMSNorm):
        new = nn.RMSNorm(module.weight.numel(), eps=module.variance_epsilon)
        new.load_state_dict(module.state_dict(), strict=False)
        model.set_submodule(name, new)
