"""What two or more tools use: arguments, checkpoints, batches, drawing, matching, features."""
