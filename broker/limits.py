"""What may grow in the broker, and how far.  Each line says what a peer sees when the limit is reached."""

REQUESTS_IN_FLIGHT_MAX = 100
"""Produce requests of one connection that may wait for replicas at once: nothing more is read from it until
the first is answered."""

FRAMES_BEFORE_YIELD = 32
"""Requests of one connection handled in a row: then its answers leave and every other connection has its
turn."""

INBOX_BYTES_START = 4 * 1024
"""The receive buffer of a connection that has not sent much: a thousand idle ones cost four megabytes."""

INBOX_BYTES_MAX = 64 * 1024
"""The receive buffer of a busy connection, and the size above which a request gets a buffer of its own."""

LARGE_FRAME_BYTES_START = 16 * 1024
"""What an announced large request is given before its bytes arrive, whatever size it announces."""

TRUSTED_FRAME_BYTES_MAX = 1024 * 1024 + 64 * 1024
"""How much a connection is given at once for a large request, if it has finished one of that size before.
Kafka's clients cut requests at 1 MiB; anything longer grows as it arrives."""

MAPPED_FRAME_BYTES_MIN = 256 * 1024
"""Buffers of large requests from this size on are no part of the heap."""

RECEIVE_BYTES_MAX = 1024 * 1024
"""The most one receive takes: then the others have their turn."""

UNFINISHED_REQUEST_BYTES_MAX = 256 * 1024 * 1024
"""Memory of all large requests together, when ``queued.max.request.bytes`` sets none: then connections
which need more are not read from, except the first in line, until others finish."""

UNFINISHED_REQUEST_STALL_SECONDS = 10.0
"""While memory is short, a large request that makes no progress for so long loses its connection."""

SPARE_FRAME_BUFFERS = 4
"""Buffers of finished large requests that are kept for the next ones."""

LONG_STEP_BYTES = 128 * 1024
"""Requests from this size on are handled in turns, one between two looks at the sockets: to check and write
so much takes as long as several small requests."""

READY_BYTES_MAX = 64 * 1024
"""Answers gathered before they are sent without waiting for more."""

SENDFILE_BYTES_MIN = 64 * 1024
"""Record ranges below this are read and sent together with what surrounds them: ``sendfile`` would gain
nothing."""

SENDFILE_BYTES_MAX = 1024 * 1024
"""The most one ``sendfile`` moves: then the others have their turn."""

DRAIN_SECONDS = 0.5
"""How long a stopping broker waits for answers that it owes, before it closes the connections."""

LOG_FILES_OPEN_MAX = 512
"""Files of logs that are kept open, of any number of them; fewer if the process may open only a few files."""

OPEN_FILES_RESERVE = 128
"""Descriptors that neither the kept files of logs nor connections may take, unless the process has few:
checkpoints, fsyncs and answers under way need some."""

OPEN_FILES_MIN = 128
"""With fewer descriptors the broker does not start."""

CONNECTIONS_EXPECTED = 1000
"""If descriptors are there for fewer connections, the broker says so at its start."""

FLUSH_RETRY_SECONDS = 1.0
"""How long a flush waits that cannot begin: no descriptor is left, or no room for a list of leader epochs."""

ACCEPT_RETRY_SECONDS = 0.1
"""How long a listener rests when the process has no file descriptor left: clients wait in the backlog."""

WANTED_DIRECTORIES_MAX = 10_000
"""Partitions that do not exist yet whose log directory somebody has named: the oldest wish is forgotten."""

LAST_ANSWERS_SECONDS = 0.2
"""So long a broker that has to end, because an fsync has failed, lets those be told who waited for it."""
