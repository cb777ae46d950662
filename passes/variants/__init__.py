"""Choose the sizes of open dims for which code of its own pays."""
