"""One file per family of operations; each registers its explanations with `words`."""
