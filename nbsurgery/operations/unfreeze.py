"""unfreeze: training may change some weights again."""

from .freeze import UnfreezeOperation

OPERATION = UnfreezeOperation()
