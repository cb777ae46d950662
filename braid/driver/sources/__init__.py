"""From a model in any form that a user has to a module."""
