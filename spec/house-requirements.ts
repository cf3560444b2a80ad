// The requirements of the source and its tests; see requirements.ts.

/** The text of each requirement of the source, by id. */
export const houseRequirements = {
  'house.imports': 'A folder imports only what the import table allows.',
  'house.sizes': 'Headers, accessors and the kernel stay within their line limits, and file names are specific.',
  'house.linter': 'The linter enforces its rules on every file, and no rule can be switched off unnoticed.',
  'house.exports': 'The exported names of each subpath are a literal list, and nothing is exported by star.',
  'house.requirements': 'Every requirement is cited by a test, and every citation names a requirement.',
  'house.hygiene':
    'No comment postpones work or suppresses a check, no text is evaluated as code, and every version is exact.',
  'house.words': 'Code and documents use the terms of the glossary.',
  'house.turnKernel': 'The code that runs one turn imports nothing that decides when a turn runs.',
  'house.rounds': 'Only the driver of plans repeats the steps of a body: there is one round loop.',
  'house.proof': 'The proof runs every campaign, every attack and every broken twin.',
  'house.tally': 'The sum of a CI run counts every failure, and names each one.',
  'house.assertions': 'Every test can fail and always runs.',
  'house.snippets': 'The code in the documents runs.',
  'house.guards':
    'Every marked guard of the source is broken by a twin, and every twin breaks exactly one marked guard.',
  'house.guard-benchmark': 'The guard benchmark fails if a case is more than 10 % slower than another build.',
} as const;
