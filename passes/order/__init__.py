"""In which order the ops of a block run."""
