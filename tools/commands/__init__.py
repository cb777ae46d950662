"""The commands of `braid`, one file each."""
