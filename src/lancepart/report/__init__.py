"""What people and programs are shown of a table: values, leaves, health."""
