// What the guards of the stores prevent: the journal cases, and damage done to real files.

import type { GuardCheck } from './kernel-checks.js';

export const storeChecks = {
  'a store in memory breaks its promise': async (library) => {
    for (const { run } of library.journalCases(() => ({ open: async () => library.memoryStore() }))) await run();
  },
} as const satisfies Record<string, GuardCheck>;
