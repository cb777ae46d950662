"""The revisions, oldest first by their names. One that was released is never changed."""
