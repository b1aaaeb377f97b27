"""Storms that are the same wherever the records are."""

from batches import FUNCTION, NODE_PROGRAM, PROGRAM, fifo, kinesis, sqs
from tap import test


def anywhere(blow):
    """Add the tests of @blow, which is batches.blow() with a place for the records."""

    @test
    def a_queue_and_a_function():
        """Records that kill, hang and end a function in the process take no attempt of
        another."""
        blow(FUNCTION, sqs)

    @test
    def a_queue_and_a_script():
        """So with a script, whose death its runtime survives."""
        blow(PROGRAM, sqs, count=27)

    @test
    def a_queue_and_a_program_of_node():
        """So with an executable that Node.js runs."""
        blow(NODE_PROGRAM, sqs, count=14, every=4)

    @test
    def a_fifo_queue():
        """In a FIFO queue what follows a failure in its group is not claimed."""
        blow(FUNCTION, fifo)

    @test
    def a_stream_that_is_split():
        """In a shard, which is split until the record that kills is alone."""
        blow(FUNCTION, kinesis, count=24)
