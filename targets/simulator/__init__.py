"""A chip with units that run side by side: what ops take, instruction streams, and their time."""
