"""Settings that all tests share."""

from hypothesis import HealthCheck, settings

# The same examples in every run: a failure in one place can be repeated in another.
settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    max_examples=100,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("project")
