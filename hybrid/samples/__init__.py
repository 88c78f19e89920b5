"""Seeded generators of images and questions whose answers are known by construction; never a benchmark result."""
