"""Places in a user's file, and what is said about them."""
