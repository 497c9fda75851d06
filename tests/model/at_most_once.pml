/*
 * One repair's order between two servers, a wire that loses, delays and doubles, and an agent that may die at any moment.
 * The lease says only who may send; whether anything happens is decided by the agent's log, written before it acts.
 *
 * Claims: the effect happens at most once; where the order is `failed` it never happens; and every run ends with the
 * order in a declared state: done, failed (surely nothing happened) or unknown (nobody knows).
 * -DNO_LOG and -DRETRY break the design in the two ways that matter; each must be found.
 */
#define SENDS 2 /* of each server; more of the same shows nothing else */

mtype = { ready, sent, done, failed, unknown };

mtype state = ready;   /* of the order, in the database */
byte lease_epoch = 0;  /* grows with each holder */
bool over = false;     /* the deadline has passed */
byte running = 2;      /* servers that may still send */

bool logged = false;   /* the agent's disk: this command was begun */
byte log_epoch = 0;
byte effects = 0;

chan wire = [2] of { byte };
chan answer = [2] of { bool };

#define IS_OPEN (state == ready || state == sent)

proctype server()
{
    byte mine;
    byte sends = 0;
    bool may;

    do
    :: sends < SENDS && IS_OPEN && !over ->
        sends++;
        atomic { lease_epoch++; mine = lease_epoch; }
        /* It may be stopped here for any time, past its lease; another takes over, and it goes on. */
        atomic {
            may = lease_epoch == mine && IS_OPEN;
            if
            :: may -> state = sent
            :: else -> skip
            fi
        }
        /* Or here, between its word in the database and the wire. */
        if
        :: may && nfull(wire) ->
            wire ! mine;
            if
            :: nfull(wire) -> wire ! mine /* doubled on the way */
            :: skip
            fi
        :: skip /* not allowed to, or died first, or the wire lost it */
        fi
    :: break
    od;
    running--
}

proctype agent()
{
    byte epoch;

end:
    do
    :: wire ? epoch ->
        if
#ifdef NO_LOG
        :: false -> skip
#else
        :: logged || epoch < log_epoch -> skip /* known, or older than what was seen */
#endif
        :: else ->
            atomic { logged = true; log_epoch = epoch; } /* on the disk before anything happens */
            if
            :: effects++;
               assert(effects <= 1);
               assert(state != failed);
               if
               :: nfull(answer) -> answer ! true
               :: skip /* the answer was lost */
               fi
            :: skip    /* died between the log and the act: it never acts, and says nothing */
            fi
        fi
    od
}

/* What became of it, from what is stored. */
proctype settle()
{
    bool word;

end:
    do
    :: answer ? word ->
        atomic {
            if
            :: IS_OPEN || state == unknown -> state = done /* late evidence settles it */
            :: else -> skip
            fi
        }
    :: !over && IS_OPEN -> /* the deadline; it may come at any moment */
        atomic {
            over = true;
            if
            :: state == ready -> state = failed
#ifdef RETRY
            :: state == sent -> logged = false; state = ready; over = false
#else
            :: state == sent -> state = unknown
#endif
            :: else -> skip
            fi
        }
    od
}

init
{
    atomic { run server(); run server(); run agent(); run settle(); }
    (running == 0 && !IS_OPEN);
    assert(state == done || state == failed || state == unknown)
}
