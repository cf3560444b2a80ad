// The requirements of hosted loops; see requirements.ts.

/** The text of each requirement of hosted loops, by id. */
export const hostedRequirements = {
  'hosted.document':
    'The document of a hosted loop is checked completely: without a maximum of turns, or with an unknown member, it is refused.',
  'hosted.schedule':
    'A turn is never early, lost or duplicated; overlapping and missed due times follow the document, also across daylight saving time.',
  'hosted.stops': 'Every stop condition stops the loop with its named reason, and none lets it go on.',
  'hosted.context':
    'A turn sees nothing of earlier turns, of signals or of messages but what is declared, recorded and sealed.',
  'hosted.projection':
    'The next turn is derived from receipts and admitted events alone; the projection can be deleted, and says how fresh it is.',
  'hosted.grant':
    'All turns share one budget, and a turn whose grant is wider than that of its loop is refused and sealed.',
  'hosted.durable': 'A hosted loop continues in any process after any crash, and no turn is lost or run twice.',
  'hosted.signals':
    'A signal is accepted once, only if it is declared, fits its schema and is authentic; it causes at most one turn.',
  'hosted.control':
    'A hosted loop can be paused, resumed and stopped by any process, and a stopped one never runs again.',
  'hosted.handoff': 'A handoff is accepted only with a valid receipt, from a declared sender, and with less authority.',
  'hosted.harness':
    'A harness runs each declared case in a store of its own, and fails if anything differs from what is expected.',
} as const;
