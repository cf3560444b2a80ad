// The requirements of grants, budgets and receipts; see requirements.ts.

/** The text of each requirement of governed turns, by id. */
export const grantRequirements = {
  'grant.tools': 'No effect runs that the grant of its turn does not permit, however the model names or encodes it.',
  'grant.document': 'A grant document is checked completely: unknown members, bad patterns and bad limits are refused.',
  'grant.derive': 'A derived grant never permits more than the grant that it is derived from.',
  'grant.budget':
    'A budget is reserved before each effect and never exceeded; reaching it stops the turn, which no loop can catch.',
  'grant.reported':
    'A provider that reports fewer tokens than it wrote or read passes no limit: at least what was counted is charged.',
  'grant.interrupt':
    'A model that is silent does not hold a turn beyond its running time or the expiry of its grant, nor beyond a default timeout.',
  'grant.shared': 'Processes that share a budget never spend more than it together.',
  'grant.review': 'A review of a grant asks a person or blocks a tool, in addition to all other policies.',
  'grant.confined': 'Under roots and destinations a tool reaches nothing else, and what nothing confines does not run.',
  'grant.prices':
    'Costs are computed one way, from dated whole prices; those of an untrusted project limit no model that leaves this machine.',
  'receipt.sealed':
    'A turn is sealed when it pauses, stops, ends or is refused, and nobody is told that it succeeded before.',
  'receipt.store': 'The receipts of a store can be listed, exported, verified against its journal, and closed.',
} as const;
