"""Surgery: the widget that holds a session and shows it in the notebook."""

from nbsurgery.widget.surgery import Surgery

__all__ = ["Surgery"]
