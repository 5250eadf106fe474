"""Rules on evaluation results."""
