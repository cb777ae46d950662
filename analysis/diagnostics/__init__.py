"""Find places in a user's file, and write messages about them."""
