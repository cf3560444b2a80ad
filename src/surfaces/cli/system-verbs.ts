/** Declares the verbs that start a project and those of the system, and the flags that many verbs share. */
import type { Verb } from './verb.js';

/** The flag of every verb that prints JSON. */
export const JSON_FLAG = ['--json', 'print JSON on stdout'] as const;
/** The flag that names the user of an answer. */
export const AS_FLAG = ['--as <who>', 'the name to record, which is not authenticated (default your login)'] as const;

const [START_GROUP, SYSTEM_GROUP] = ['Start', 'System'] as const;

/** The verbs that create a project and work on it. The help lists them first. */
export const startVerbs: readonly Verb[] = [
  {
    name: 'init',
    group: START_GROUP,
    arguments: '[dir]',
    description: 'Create a TypeScript project with an agent, a tool, a loop and a test. Never overwrites a file.',
    options: [JSON_FLAG],
    examples: ['rondo init my-agents', 'rondo init --json'],
    load: async () => (await import('./verbs/init.js')).init,
  },
  {
    name: 'dev',
    group: START_GROUP,
    arguments: '',
    description: 'Reload the definitions when they change, report problems, and continue turns that are due.',
    options: [['--json', 'print one event per line']],
    examples: ['rondo dev', 'rondo dev --loops examples/hello --json'],
    load: async () => (await import('./verbs/dev.js')).dev,
  },
];

/** The verbs of the system. The help lists them last. */
export const systemVerbs: readonly Verb[] = [
  {
    name: 'trust',
    group: SYSTEM_GROUP,
    arguments: '[dir]',
    description:
      'Allow the definitions of a directory to run code, permanently; without a directory, show all permissions.',
    options: [['--remove', 'revoke the given permissions'], JSON_FLAG],
    examples: [
      'rondo trust',
      'rondo trust .',
      'rondo trust . --remove',
      'rondo trust --send LAB_KEY=llm.example.com',
      'rondo trust --reach 127.0.0.1:11434',
    ],
    load: async () => (await import('./verbs/trust.js')).trust,
  },
  {
    name: 'conformance',
    group: SYSTEM_GROUP,
    arguments: '',
    description: 'Check this runtime, or another one, against LSEM v0.1, the Loop Stack Execution Model.',
    options: [
      ['--driver <file>', 'an ES module that exports a driver for the runtime under test; it runs as code'],
      ['--only <ids>', 'only these checks, such as DEF-01,VAL-02'],
      ['--timeout <ms>', 'the time limit of one check (default 10000)'],
      JSON_FLAG,
    ],
    examples: [
      'rondo conformance',
      'rondo conformance --only DEF-01 --json',
      'rondo conformance --driver ./driver.mjs --timeout 30000',
    ],
    load: async () => (await import('./verbs/conformance.js')).conformance,
  },
  {
    name: 'harness',
    group: SYSTEM_GROUP,
    arguments: '<dir>',
    description: 'Run the cases that harness.toml of a directory declares, each in a store of its own, and compare.',
    options: [
      ['--receipt-dir <dir>', 'write the receipts of each case, and keys.json, to this new directory'],
      JSON_FLAG,
    ],
    examples: ['rondo harness .', 'rondo harness examples/loop-orchestration --receipt-dir receipts --json'],
    load: async () => (await import('./verbs/harness.js')).harness,
  },
  {
    name: 'doctor',
    group: SYSTEM_GROUP,
    arguments: '',
    description: 'Check everything that a turn needs, and explain how to fix problems.',
    options: [
      ['--full', 'verify the whole store, regardless of its size'],
      ['--accept <name>', 'accept the damage of a session, or @anchor or @orphan; may be repeated', 'repeats'],
      ['--reason <text>', 'the reason to record with --accept'],
      AS_FLAG,
      JSON_FLAG,
    ],
    examples: [
      'rondo doctor',
      'rondo doctor --full --json',
      'rondo doctor --accept s-1f0c --as ada --reason "test data"',
    ],
    load: async () => (await import('./verbs/doctor.js')).doctor,
  },
  {
    name: 'remove',
    group: SYSTEM_GROUP,
    arguments: '<session>',
    description: 'Remove a session with all its data; a record of the removal remains.',
    options: [
      ['--yes', 'do not ask for confirmation; required without a terminal'],
      ['--reason <text>', 'the reason to record'],
      AS_FLAG,
      JSON_FLAG,
    ],
    examples: ['rondo remove s-1f0c', 'rondo remove s-1f0c --as ada --reason "customer asked" --yes'],
    load: async () => (await import('./verbs/remove.js')).remove,
  },
  {
    name: 'completion',
    group: SYSTEM_GROUP,
    arguments: '<shell> [verb]',
    description: 'Print the completion script of bash, zsh or fish; `ids VERB` prints the ids that complete a verb.',
    options: [JSON_FLAG],
    examples: [
      'rondo completion bash > ~/.local/share/bash-completion/completions/rondo',
      'rondo completion zsh > ~/.zsh/completions/_rondo',
      'rondo completion fish > ~/.config/fish/completions/rondo.fish',
    ],
    load: async () => (await import('./verbs/completion.js')).completion,
  },
  {
    name: 'demo',
    group: SYSTEM_GROUP,
    arguments: '',
    description: 'Kill a running turn and finish it in another process, with no effect performed twice.',
    options: [],
    examples: ['rondo demo'],
    load: async () => (await import('./verbs/demo.js')).demo,
  },
];
