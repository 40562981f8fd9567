/*
 * Fail-over of the coordinator: which agents may form the next round, so that there are never two
 * worlds of one run. docs/FAILOVER.md has the rules; model_test.py checks them and their variants.
 *
 * Nothing is timed here. An agent may find any other one silent at any moment, which covers every
 * partition, loss in one direction, and processes that are suspended or slow. Only a death proves
 * something: the kernel of that host then refuses connections, and closes the links.
 *
 * Sizes: AGENTS (at most 5), FIRST (a mask: the members of round 0), DEATHS, ROUNDS (the first one
 * included). WITNESS: what must be reachable, as an assertion that fails.
 * Each of these changes one rule:
 *   DEATHS_COUNT    a candidate counts the deaths of others than the author
 *   NO_SETTLE       a round is the measure of the next one as soon as it is formed
 *   NEWCOMERS_VOTE  agents that were not in the round before count towards settling the next one
 *   EOF_COUNTS      a link that the agent itself has closed counts as the agent's end
 *   ANY_END_COUNTS  so does the death of an agent that had taken on a round of another author
 *   TIE_SETTLES     a coordinator that continues alone of two settles its rounds alone
 *   DOUBLE_VOTE     an agent takes on any round with a greater number
 *   INFER_SETTLED   a candidate takes a round for settled because enough agents claim it
 *   NO_CATCH_UP     a candidate does not pass on the unfinished round of a lost author (safe)
 * WORLDS_ONLY checks worlds, and not the chain of settled rounds.
 */
#ifndef AGENTS
#define AGENTS 3
#endif
#ifndef FIRST
#define FIRST ((1 << AGENTS) - 1)
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef ROUNDS
#define ROUNDS 4
#endif
#ifndef WITNESS
#define WITNESS 0
#endif

#define NOBODY AGENTS
#define HAS(mask, agent) (((mask) >> (agent)) & 1)
#define COUNT(mask) \
  (HAS(mask, 0) + HAS(mask, 1) + HAS(mask, 2) + HAS(mask, 3) + HAS(mask, 4))
#define LINK(server, client) ((server) * AGENTS + (client))

/* What a coordinator or candidate sees of the link of an agent. */
#define NONE 0
#define OPEN 1 /* and the agent is at its other end */
#define LEFT 2 /* the agent has closed it, which is not known here, and may be with another one */
#define DIED 3 /* the agent's process died while it was on this link */

/* Rounds: a table, written once for each. */
byte rounds = 1;
byte author[ROUNDS];
byte parent[ROUNDS]; /* the round by which it was measured */
byte members[ROUNDS];
byte number[ROUNDS];
byte needs[ROUNDS];       /* members of the parent that must take it on */
/* If the parent was not known to be settled: how many members of the parent's parent, too. */
byte needs_before[ROUNDS];

byte alive = (1 << AGENTS) - 1;
byte at[AGENTS];            /* whose link it has; NOBODY: it is a coordinator or candidate */
byte newest[AGENTS];        /* its vote: the newest round that it has taken on */
byte knows = FIRST;         /* agents that know that their newest round is settled */
byte in_flight[AGENTS];     /* a round on the agent's link, not yet taken on; 0 if none */
byte view[AGENTS * AGENTS];
byte claim[AGENTS * AGENTS];
byte ended[AGENTS];

/* For the checks only. */
byte settled = 0; /* the newest settled round */
#if WITNESS == 5
bit split = 0; /* the first coordinator died while a round of its had reached one of two agents */
#endif

/* Local to one step: no part of the state. */
hidden byte base, claimed, need, need_to_settle, need_before, voters, next_members, size, up, top,
  ended_count, highest, complete, ok, i_, round_, takers;

/* ok: an agent whose newest round is `mine` does not vote a second time on what follows `base_`. */
inline check_vote(mine, base_, author_, joint) {
  ok = 1;
#ifndef DOUBLE_VOTE
  top = (joint -> parent[base_] : base_);
  if
  :: mine == base_ || (mine != 0 && parent[mine] == base_ && author[mine] == author_)
  :: else ->
    up = mine;
    do
    :: up == 0 || !ok -> break
    :: else -> up = parent[up]; if :: up == top -> ok = 0 :: else fi
    od
  fi
#endif
}

inline note_settled(round) {
  /* One chain: what is settled follows the newest settled round, directly or by one more. */
  up = settled;
  do
  :: up == round || up == 0 -> break
  :: else -> up = parent[up]
  od;
  if
  :: up == round
  :: else ->
#ifndef WORLDS_ONLY
    assert(parent[round] == settled ||
           (needs_before[round] != 0 && parent[parent[round]] == settled));
#endif
    settled = round;
  fi
}

inline check_worlds() {
  complete = 0;
  for (round_ : 1 .. ROUNDS - 1) {
    if
    :: round_ < rounds && members[round_] != 0 && (members[round_] & alive) == members[round_] ->
      ok = 1;
      for (i_ : 0 .. AGENTS - 1) {
        if
        :: HAS(members[round_], i_) && newest[i_] != round_ -> ok = 0
        :: else
        fi
      }
      complete = complete + ok;
    :: else
    fi
  }
  assert(complete <= 1); /* never two worlds */
}

inline try_settle(s) {
  round_ = newest[s];
  if
  :: round_ != 0 && author[round_] == s && !HAS(knows, s) ->
    takers = 1 << s;
    for (i_ : 0 .. AGENTS - 1) {
      if
      :: i_ != s && view[LINK(s, i_)] != NONE && claim[LINK(s, i_)] == round_ ->
        takers = takers | (1 << i_)
      :: else
      fi
    }
    if
#ifdef NEWCOMERS_VOTE
    :: COUNT(takers & members[round_]) >= needs[round_] &&
#else
    :: COUNT(takers & members[parent[round_]]) >= needs[round_] &&
#endif
       (needs_before[round_] == 0 ||
        COUNT(takers & members[parent[parent[round_]]]) >= needs_before[round_]) ->
      knows = knows | (1 << s);
      note_settled(round_);
#if WITNESS == 1
      assert(!(s != author[parent[round_]] && !HAS(alive, author[parent[round_]])));
#endif
#if WITNESS == 2
      assert(!(s != author[parent[round_]] && HAS(alive, author[parent[round_]]) &&
               COUNT(members[parent[round_]]) == 3 && COUNT(members[round_]) == 2));
#endif
#if WITNESS == 3
      assert(!(needs_before[round_] != 0));
#endif
#if WITNESS == 5
      assert(!(split && s != 0));
#endif
#if WITNESS == 4
      assert(!(parent[round_] != 0 && s != author[parent[round_]] && author[parent[round_]] != 0));
#endif
    :: else
    fi
  :: else
  fi
}

inline form(s) {
  round_ = newest[s];
  need_before = 0;
  if
  :: HAS(knows, s) -> base = round_
  :: else ->
    if
    :: author[round_] == s -> base = parent[round_]; need_before = needs_before[round_]
    :: else ->
      base = round_;
      if
      :: needs_before[round_] == 0 -> need_before = needs[round_]
      :: else -> need_before = AGENTS + 1 /* a second unsettled round: wait */
      fi
    fi
  fi;
  voters = 1 << s;
  next_members = 1 << s;
  highest = number[newest[s]];
  for (i_ : 0 .. AGENTS - 1) {
    if
    :: i_ != s && view[LINK(s, i_)] != NONE ->
      claimed = claim[LINK(s, i_)];
      if
      :: number[claimed] > highest -> highest = number[claimed]
      :: else
      fi;
      if
      :: claimed == base || (claimed != 0 && parent[claimed] == base && author[claimed] == s) ->
        voters = voters | (1 << i_)
      :: else
      fi;
      check_vote(claimed, base, s, need_before != 0);
      if
      :: ok || (!HAS(members[base], i_) && need_before == 0) ->
        next_members = next_members | (1 << i_)
      :: else
      fi
    :: else
    fi
  }
  size = COUNT(members[base]);
  if
  :: author[base] == s ->
    ended_count = COUNT(ended[s] & members[base]);
    need = (size - ended_count) / 2 + 1;
    need_to_settle = need;
    if
    :: size - ended_count == 2 ->
      need = 1;
#ifdef TIE_SETTLES
      need_to_settle = 1
#else
      if :: ended_count != 0 -> need_to_settle = 1 :: else fi
#endif
    :: else
    fi
  :: else ->
#ifdef DEATHS_COUNT
    ended_count = COUNT(members[base] & ~alive);
    need = (size - ended_count) / 2 + 1;
#else
    need = size / 2 + 1;
    if
    :: !HAS(alive, author[base]) && HAS(members[base], author[base]) -> need = (size - 1) / 2 + 1
    :: else
    fi;
#endif
    need_to_settle = need;
  fi;
  if
  :: COUNT(voters & members[base]) >= need &&
     (need_before == 0 || COUNT(voters & members[parent[base]]) >= need_before) ->
#ifdef INFER_SETTLED
    if :: need_before != 0 -> note_settled(base) :: else fi;
    need_before = 0;
#endif
    author[rounds] = s;
    parent[rounds] = base;
    members[rounds] = next_members;
    number[rounds] = highest + 1;
    needs[rounds] = need_to_settle;
    needs_before[rounds] = need_before;
    for (i_ : 0 .. ROUNDS - 1) {
      /* One stamp, one round. */
      assert(!(i_ < rounds && author[i_] == s && number[i_] == number[rounds]));
    }
    newest[s] = rounds;
#ifndef NO_SETTLE
    knows = knows & ~(1 << s);
#endif
    for (i_ : 0 .. AGENTS - 1) {
      if
      :: i_ != s && HAS(next_members, i_) && view[LINK(s, i_)] == OPEN -> in_flight[i_] = rounds
      :: else
      fi
    }
    rounds++;
    printf("agent %d forms round %d, number %d, after %d: members %d, needs %d of it, %d before\n",
           s, newest[s], number[newest[s]], base, next_members, need_to_settle, need_before);
    try_settle(s);
    check_worlds();
  :: else
  fi
}

inline close_links(s) {
  for (i_ : 0 .. AGENTS - 1) {
    if
    :: at[i_] == s -> at[i_] = NOBODY; in_flight[i_] = 0
    :: else
    fi;
    view[LINK(s, i_)] = NONE;
    claim[LINK(s, i_)] = 0;
  }
  ended[s] = 0;
}

inline die(a) {
  if
  :: at[a] != NOBODY -> view[LINK(at[a], a)] = DIED
  :: else
  fi;
  close_links(a);
  alive = alive & ~(1 << a);
  knows = knows & ~(1 << a);
  at[a] = NOBODY;
  newest[a] = 0;
  in_flight[a] = 0;
  printf("agent %d dies\n", a);
#if WITNESS == 5
  if
  :: a == 0 && newest[1] + newest[2] == 1 && author[1] == 0 && members[1] == FIRST &&
     (knows & (1 << (newest[1] == 1 -> 1 : 2))) == 0 -> split = 1
  :: else
  fi;
#endif
  check_worlds();
}

inline take(c) {
  round_ = in_flight[c];
  in_flight[c] = 0;
  check_vote(newest[c], parent[round_], author[round_], needs_before[round_] != 0);
  if
  :: !HAS(members[parent[round_]], c) && needs_before[round_] == 0 -> ok = 1
  :: else
  fi;
  if
  :: ok && number[round_] > number[newest[c]] ->
    newest[c] = round_;
#ifdef NO_SETTLE
    knows = knows | (1 << c);
#else
    knows = knows & ~(1 << c);
#endif
    printf("agent %d takes on round %d\n", c, round_);
    check_worlds();
  :: else
  fi
}

inline hear(s, c) {
  claim[LINK(s, c)] = newest[c];
  if
  :: newest[c] == newest[s] && HAS(knows, c) -> knows = knows | (1 << s)
  :: else
  fi;
  printf("agent %d hears of %d, which has round %d\n", s, c, newest[c]);
  try_settle(s);
}

/* An agent takes on the round of a claim that follows its own, and the author's fails to come. */
inline adopt(s, c) {
  round_ = claim[LINK(s, c)];
  check_vote(newest[s], parent[round_], author[round_], needs_before[round_] != 0);
  if
  :: ok ->
    newest[s] = round_;
    knows = knows & ~(1 << s);
    if :: newest[c] == round_ && HAS(knows, c) -> knows = knows | (1 << s) :: else fi;
    printf("candidate %d takes on round %d of the claim of %d\n", s, round_, c);
    check_worlds();
  :: else
  fi
}

/* A member that had taken on another successor of the base may have settled it before it ended. */
inline see_end(s, c) {
  round_ = newest[s];
  base = (HAS(knows, s) -> round_ : (author[round_] == s -> parent[round_] : round_));
  up = claim[LINK(s, c)];
#ifndef ANY_END_COUNTS
  if
  :: up == base || (up != 0 && parent[up] == base && author[up] == s) ->
#endif
    ended[s] = ended[s] | (1 << c);
    printf("agent %d sees that %d has ended\n", s, c)
#ifndef ANY_END_COUNTS
  :: else
  fi
#endif
  ;
  view[LINK(s, c)] = NONE;
  claim[LINK(s, c)] = 0;
}

#define IS(mask, agent) (HAS(mask, agent) == 1)

#define ACTS(agent) (IS(alive, agent) && at[agent] == NOBODY)

#define AGENT_STEPS(a) \
  :: d_step { IS(alive, a) && COUNT(alive) > AGENTS - DEATHS -> die(a) } \
  :: d_step { at[a] != NOBODY -> \
       view[LINK(at[a], a)] = LEFT; \
       printf("agent %d leaves %d\n", a, at[a]); \
       at[a] = NOBODY; in_flight[a] = 0 } \
  :: d_step { in_flight[a] != 0 -> take(a) } \
  :: d_step { ACTS(a) && rounds < ROUNDS -> form(a) }

#ifdef EOF_COUNTS
#define PROVES_DEATH(state) (state == LEFT || state == DIED)
#else
#define PROVES_DEATH(state) (state == DIED)
#endif

#define LINK_STEPS(s, c) \
  :: d_step { ACTS(s) && ACTS(c) -> \
       close_links(c); at[c] = s; \
       view[LINK(s, c)] = OPEN; ended[s] = ended[s] & ~(1 << c); \
       hear(s, c) } \
  :: d_step { at[c] == s && claim[LINK(s, c)] != newest[c] -> hear(s, c) } \
  :: d_step { at[c] == s && newest[c] == newest[s] && IS(knows, s) && !IS(knows, c) -> \
       knows = knows | (1 << c); \
       printf("agent %d tells %d that round %d is settled\n", s, c, newest[s]) } \
  :: d_step { PROVES_DEATH(view[LINK(s, c)]) -> see_end(s, c) } \
  :: d_step { view[LINK(s, c)] > OPEN -> \
       view[LINK(s, c)] = NONE; claim[LINK(s, c)] = 0; \
       printf("agent %d drops %d\n", s, c) }

/* A round whose author is lost continues from those that have it to those that do not. */
#ifdef NO_CATCH_UP
#define CATCH_UP(s, c)
#else
#define CATCH_UP(s, c) \
  :: d_step { at[c] == s && newest[s] != 0 && in_flight[c] == 0 && \
              claim[LINK(s, c)] != newest[s] && claim[LINK(s, c)] == parent[newest[s]] && \
              IS(members[newest[s]], c) -> \
       in_flight[c] = newest[s]; \
       printf("agent %d sends round %d again to %d\n", s, newest[s], c) } \
  :: d_step { view[LINK(s, c)] != NONE && number[claim[LINK(s, c)]] > number[newest[s]] && \
              IS(members[claim[LINK(s, c)]], s) -> \
       adopt(s, c) }
#endif

init {
  d_step {
    for (i_ : 0 .. AGENTS - 1) {
      at[i_] = NOBODY;
      if
      :: i_ != 0 && HAS(FIRST, i_) -> at[i_] = 0; view[LINK(0, i_)] = OPEN
      :: else
      fi
    }
    members[0] = FIRST;
    /* author[0] = parent[0] = number[0] = 0: the first round is settled from the start */
  }
end:
  do
  AGENT_STEPS(0)
  AGENT_STEPS(1)
  LINK_STEPS(0, 1)
  CATCH_UP(0, 1)
  LINK_STEPS(1, 0)
  CATCH_UP(1, 0)
#if AGENTS > 2
  AGENT_STEPS(2)
  LINK_STEPS(0, 2)
  CATCH_UP(0, 2)
  LINK_STEPS(2, 0)
  CATCH_UP(2, 0)
  LINK_STEPS(1, 2)
  CATCH_UP(1, 2)
  LINK_STEPS(2, 1)
  CATCH_UP(2, 1)
#endif
#if AGENTS > 3
  AGENT_STEPS(3)
  LINK_STEPS(0, 3)
  CATCH_UP(0, 3)
  LINK_STEPS(3, 0)
  CATCH_UP(3, 0)
  LINK_STEPS(1, 3)
  CATCH_UP(1, 3)
  LINK_STEPS(3, 1)
  CATCH_UP(3, 1)
  LINK_STEPS(2, 3)
  CATCH_UP(2, 3)
  LINK_STEPS(3, 2)
  CATCH_UP(3, 2)
#endif
  od
}
