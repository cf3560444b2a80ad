// Every MUST we answer for, by id. Tests cite ids with verifies(); spec/house/requirements.test.ts fails on an
// id that no test cites, and the compiler on a citation of an id that is not here.

export const requirements = {
  'house.imports': 'A folder imports only what the import table allows it.',
  'house.sizes':
    'Files, functions, headers and the kernel stay within their line limits; file names say what they own.',
  'house.exports': 'The exported names of each subpath are a literal list, and nothing is exported by star.',
  'house.requirements': 'Every requirement is cited by a test, and every citation names a requirement.',
  'house.hygiene': 'No postponed work, no switched-off checks, no evaluated code, no inexact versions.',
  'kernel.once': "A keyed entry is written to the session's journal once; asking again returns what was written.",
  'kernel.kill': 'Killed at any time, a process that is started again loses nothing and does nothing twice.',
  'kernel.crash': 'A crash at any append, before or after it became durable, ends in the same entries as no crash.',
} as const satisfies Record<string, string>;

export type RequirementId = keyof typeof requirements;
