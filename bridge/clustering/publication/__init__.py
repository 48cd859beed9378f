"""Publishing: engines without skipbridge read the clustered files of a partition, too.

The law: skipbridge never moves or deletes a file that it did not write, and takes no switch back.
A publication makes a new directory with the rows of a quiet one, and switches the location that
the metastore has. The old directory stays whole. What a writer puts there afterwards is listed
until somebody has decided about it, and never copied.
"""
