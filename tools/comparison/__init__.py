"""Comparing two ways to run a model, op by op or cluster by cluster."""
