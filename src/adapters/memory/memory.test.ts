/** The store in memory passes the cases for stores. */
import { verifies } from '../../../spec/verifies.js';
import { journalCases } from '../../testing/journal-cases.js';
import { memoryStore } from './index.js';

for (const { name, run } of journalCases(() => ({ open: async () => memoryStore() }))) {
  verifies('journal.cases', `in memory: ${name}`, run);
}
