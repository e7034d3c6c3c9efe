"""Running a scenario: daemons on hosts, documents, faults, and then the truth about what everybody got."""
