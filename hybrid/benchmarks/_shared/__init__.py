"""What two or more benchmarks use."""
