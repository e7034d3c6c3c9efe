"""Options of the daemons: one table, from which flags, environment, file and documentation follow.

``kinds`` reads and shows values; ``table`` lists the options; ``resolving`` says which value is in force and where
it comes from (flags over environment over file over defaults); ``file`` reads and changes the file. Begin with
``table``: to add an option, add a row there, and its line to ``docs/configuration.md`` (a test prints it).
"""
