"""The service: tasks over HTTP, worked off by processes of their own."""
