"""Orders, matchings and trees."""
