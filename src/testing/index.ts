export { type CrashingStore, type CrashPoint, crashingStore } from './crashing-journal.js';
export { type JournalCase, journalCases, type StoreUnderTest } from './journal-cases.js';
export { ManualClock } from './manual-clock.js';
export { answerOf, loopOf, type Outside, randomProgram, type Step } from './programs.js';
export { seededIds, seededRandom } from './seeded-ids.js';
export { reportTo, type Sighting, type Sink, seenBy, startSink } from './sink.js';
