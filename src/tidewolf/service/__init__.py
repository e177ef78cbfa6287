"""Many named sessions behind one door: `tidewolf serve`.

    PUT a session;   POST decisions -> a point;   POST observations -> what it came to;   ...

All that answers a request is decided here, one session at a time, and acknowledged only once it is
on disk. Rounds count from 1, as they do in requests.

replies.py     who asks, what is answered, and how much is allowed
bodies.py      requests read: keys, rounds, words
notes.py       what was answered in a round, as the shelf keeps it
modes.py       live, shadow, frozen, pinned: which point is played, and why
ladder.py      the learner, the last good decision, a static one
feedback.py    what a round turned out to be: numbers, gradients or values
served.py      one session: decides, learns, remembers what it answered
operating.py   modes, pins, going back, another learner: what operators do to a session
sessions.py    all of them by name: opened at first use, let go of when they fail or are not used
overview.py    how all of them stand, without opening any
"""
