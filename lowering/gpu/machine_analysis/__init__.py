"""What machine code of GPUs says about its speed, without a GPU."""
