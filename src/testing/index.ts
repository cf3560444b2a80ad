export { type CrashingStore, type CrashPoint, crashingStore } from './crashing-journal.js';
export { type JournalCase, journalCases, type StoreUnderTest } from './journal-cases.js';
export { ManualClock } from './manual-clock.js';
export { seededIds, seededRandom } from './seeded-ids.js';
