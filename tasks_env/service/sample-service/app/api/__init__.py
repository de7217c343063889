"""What every feature of the API shares."""
