"""What people look at: tables, and later pages."""
