// Reasons in words, as `lessor explain` says them.

const REASONS = {
  wants: ['its own wants: it gets all that it asks for', 'Nothing has to be done; for more it has to want more.'],
  level: ['the level: everybody of its priority gets so much at the most, each by its weight', 'More capacity, fewer wants of others, or a greater priority for it.'],
  band: ['greater priorities: they want all that there is', 'More capacity than those want, fewer wants of theirs, or a greater priority for it.'],
  static: ['the template: STATIC gives everybody no more than its capacity', 'More capacity in the template, or an algorithm that shares.'],
  turn: ['whole units: its turn for one more has not come', 'Wait for the turn, or give it more capacity.'],
  others_out: ['leases of others that are above their shares, which they have not given back yet', 'Wait: it is over when they have reported, or their leases have ended.'],
  kept_free: ['what is kept free for others that wait for what is theirs', 'Wait: they are served first.'],
  ghost: ['what leaders before this one left out to holders that have not shown it', 'Wait until the last of those leases has certainly ended.'],
  mark: ['the mark: more is granted when a larger one is written for successors', 'Wait a moment; if it lasts, look at etcd, or at the state directory.'],
  lease_above: ['the lease of this node from the one above: there is none, or it is of nothing', 'Look at the node above, and at the way there.'],
  debt: ['a cut: more is out than the capacity, and nobody grows before that is over', 'Wait: it is over when holders have given back, or after a lease at the latest.'],
  learning: ['the server learns what is out from before its start, and grants no more than was there', 'Wait until it has learnt.'],
  claim: ['what it has from a leader before this one: it is told nothing else yet', 'Wait until that has ended, or is claimed.'],
  legacy_fraction: ['legacy_max_fraction: clients without incarnation have no more than that together', 'A larger legacy_max_fraction, or a client that draws an incarnation.'],
  superseded: ['another life of the same id: this one has not been heard of since', 'If both live, give each an id of its own.'],
  other_kind: ['the other kind: units a second and units in use do not mix while something of before is out', 'Wait until the leases of before have ended.'],
  recall: ['a recall: an operator, or rules of access, took it back', '`lessor admin recall` lists recalls, and --lift ends one.'],
  override: ['an operator, for a while: the resource is frozen, or drained', 'The end of the override, or an operator who lifts it.'],
  no_template: ['no template covers the resource any more', 'A template that matches its name.'],
};

const what = (reason) => REASONS[reason]?.[0] ?? reason;
const remedy = (reason) => REASONS[reason]?.[1] ?? '';
const REASON_NAMES = Object.keys(REASONS);
