"""In which layout every tensor lives."""
