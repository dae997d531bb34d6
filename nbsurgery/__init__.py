"""nbsurgery: see how a PyTorch model is wired, click what should change, get the code."""
