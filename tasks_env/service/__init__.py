"""The service-change benchmark: a task over a small web service, and an evaluator that is proven before it judges."""
