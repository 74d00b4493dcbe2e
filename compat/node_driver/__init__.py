"""What drivers of Node's clients share: in JavaScript, how calls come in; in Python, how one is had."""
