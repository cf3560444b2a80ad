/** Declares the verbs of the command line with their help texts. Handlers are imported when a verb is used. */

import { AS_FLAG, JSON_FLAG, startVerbs, systemVerbs } from './system-verbs.js';
import type { Verb } from './verb.js';
import { workerVerbs } from './worker-verbs.js';

const WATCH_FLAG = ['--watch', 'show the call tree while the turn runs'] as const;

const MODEL_FLAG = [
  '--model <model>',
  'the model of all prompts of workflows, and of prompts that name none: PROVIDER:MODEL',
] as const;

const GRANT_FLAG = ['--grant <file>', 'a JSON file with what the turn may do and use', 'repeats'] as const;

const FULL_FLAG = ['--full', 'do not shorten long values'] as const;

const [RUN_GROUP, DEFINITIONS_GROUP, INSPECT_GROUP, ANSWER_GROUP] = [
  'Run',
  'Definitions',
  'Inspect',
  'Answer',
] as const;

const PROOF_GROUP = 'Proof';

/** The verbs of receipts. */
const proofVerbs: readonly Verb[] = [
  {
    name: 'receipts',
    group: PROOF_GROUP,
    arguments: '[turn]',
    description: 'List the signed receipts of all turns, of a turn or of a session.',
    options: [JSON_FLAG],
    examples: ['rondo receipts', 'rondo receipts last --json'],
    load: async () => (await import('./verbs/receipts.js')).receipts,
  },
  {
    name: 'verify',
    group: PROOF_GROUP,
    arguments: '[file|turn]',
    description: 'Verify a file of receipts, offline; or the receipts of a turn, or of all, against the store.',
    options: [
      ['--all', 'verify all receipts of the store'],
      ['--keys <file>', 'the keys that you trust (default those of the data directory)'],
      ['--allow-local-development-signatures', 'accept the sig: signatures of runx, which prove nothing'],
      JSON_FLAG,
    ],
    examples: ['rondo verify receipts.json --keys keys.json', 'rondo verify last', 'rondo verify --all --json'],
    load: async () => (await import('./verbs/verify.js')).verify,
  },
  {
    name: 'export',
    group: PROOF_GROUP,
    arguments: '',
    description: 'Write receipts as one file that anyone can verify offline: of all sessions, of one, or of a turn.',
    options: [
      ['--session <id>', 'only this session'],
      ['--turn <turn>', 'only the session of this turn'],
      ['--as <format>', 'dsse (default), or runx for the last receipt of a turn in the form of runx'],
      ['--out <file>', 'the file to write (default stdout)'],
      JSON_FLAG,
    ],
    examples: ['rondo export --out receipts.json', 'rondo export --turn last --as runx --out receipt.json'],
    load: async () => (await import('./verbs/export.js')).exportReceipts,
  },
  {
    name: 'keys',
    group: PROOF_GROUP,
    arguments: '[command] [key]',
    description:
      'Show the public keys of receipts, as a keys file with --json; or create, accept, rotate or revoke keys.',
    options: [
      ['--role <role>', 'rotate: receipt (default) or checkpoint'],
      ['--all', 'revoke: for all receipts, not only for those from now on'],
      JSON_FLAG,
    ],
    examples: [
      'rondo keys',
      'rondo keys show --json > keys.json',
      'rondo keys rotate',
      'rondo keys revoke receipt-1f0c --all',
    ],
    load: async () => (await import('./verbs/keys.js')).keys,
  },
  {
    name: 'close',
    group: PROOF_GROUP,
    arguments: '<session>',
    description: 'Close a session with its terminal receipt: nothing may follow it, and a missing receipt is noticed.',
    options: [JSON_FLAG],
    examples: ['rondo close s-1f0c', 'rondo close s-1f0c --json'],
    load: async () => (await import('./verbs/close.js')).closeSession,
  },
];

/** All verbs, in the order in which the help lists them. */
export const verbs: readonly Verb[] = [
  ...startVerbs,
  {
    name: 'run',
    group: RUN_GROUP,
    arguments: '<loop>',
    description: 'Run one turn of a loop: by id, as id@version, or from a definition file.',
    options: [
      ['--input <json>', 'JSON, @file, or - for stdin (default {})'],
      ['--session <id>', 'the session of the turn (default a new one)'],
      ['--key <key>', 'an idempotency key: the same key and --as return the same turn'],
      ['--version <version>', 'the version of the loop (default the newest)'],
      ['--as <who>', 'the user on whose behalf the turn runs, which is not authenticated'],
      ['--approver <who>', 'only this user may answer its approvals; may be repeated', 'repeats'],
      MODEL_FLAG,
      GRANT_FLAG,
      WATCH_FLAG,
      JSON_FLAG,
    ],
    examples: [
      'rondo run hello --input \'{"name": "Ada"}\'',
      'rondo run summarise@1.2.0 --input @article.json --watch',
      'rondo run loops/hello.json --key order-17 --json',
      'rondo run triage.toml --model anthropic:claude-sonnet-4-5',
      'rondo run refund --input \'{"prompt": "order 17"}\' --as ada --approver bob',
      'rondo run support --input \'{"prompt": "order 17"}\' --grant support.grant.json',
    ],
    load: async () => (await import('./verbs/run.js')).run,
  },
  {
    name: 'chat',
    group: RUN_GROUP,
    arguments: '<agent>',
    description: 'Chat with an agent: in a terminal, or with one message per line on stdin.',
    options: [
      ['--session <id>', 'the session to continue (default a new one)'],
      ['--as <who>', 'your name for turns and approvals, which is not authenticated (default your login)'],
      ['--version <version>', 'the version of the agent (default the newest)'],
      ['--json', 'read messages from stdin and print one envelope per line'],
    ],
    examples: [
      'rondo chat helper',
      'rondo chat helper --session s-1f0c --as ada',
      'rondo chat loops/helper.json --json',
    ],
    load: async () => (await import('./verbs/chat.js')).chat,
  },
  {
    name: 'resume',
    group: RUN_GROUP,
    arguments: '[turn]',
    description: 'Resume a turn that is paused or interrupted, or all such turns.',
    options: [
      ['--all', 'resume every turn that is paused or interrupted'],
      ['--grant <file>', 'another grant for a turn that stopped at its grant, or whose grant expired', 'repeats'],
      WATCH_FLAG,
      JSON_FLAG,
    ],
    examples: ['rondo resume s-1f0c', 'rondo resume --all', 'rondo resume s-1f0c --grant more.json'],
    load: async () => (await import('./verbs/resume.js')).resume,
  },
  {
    name: 'retry',
    group: RUN_GROUP,
    arguments: '<turn>',
    description: 'Retry a failed turn: continue it where it failed, and keep what succeeded.',
    options: [WATCH_FLAG, JSON_FLAG],
    examples: ['rondo retry s-1f0c', 'rondo retry s-1f0c --json'],
    load: async () => (await import('./verbs/retry.js')).retry,
  },
  {
    name: 'fork',
    group: RUN_GROUP,
    arguments: '<turn>',
    description: 'Fork a turn: copy it up to an entry into a new session, which continues from there.',
    options: [['--at <seq>', 'the number of the last entry that the fork has in common with the turn'], JSON_FLAG],
    examples: ['rondo fork s-1f0c --at 12', 'rondo fork last --at 12 --json'],
    load: async () => (await import('./verbs/fork.js')).fork,
  },
  ...workerVerbs,
  {
    name: 'cancel',
    group: RUN_GROUP,
    arguments: '<turn>',
    description: 'Cancel a turn.',
    options: [['--reason <text>', 'the reason to record'], JSON_FLAG],
    examples: ['rondo cancel s-1f0c --reason "wrong customer"'],
    load: async () => (await import('./verbs/cancel.js')).cancel,
  },
  {
    name: 'list',
    group: DEFINITIONS_GROUP,
    arguments: '',
    description: 'List the loops of the project.',
    options: [JSON_FLAG],
    examples: ['rondo list', 'rondo list --loops examples/hello --json'],
    load: async () => (await import('./verbs/list.js')).list,
  },
  {
    name: 'show',
    group: DEFINITIONS_GROUP,
    arguments: '<loop|turn>',
    description:
      'Show a definition with its digest, versions and callers; or a turn with the input, prompts, replies, output ' +
      'and usage of every call. The id of a loop takes precedence over a turn.',
    options: [
      ['--version <version>', 'the version of the loop (default the newest)'],
      ['--mermaid', 'print a Mermaid diagram of the loop'],
      MODEL_FLAG,
      FULL_FLAG,
      JSON_FLAG,
    ],
    examples: [
      'rondo show hello',
      'rondo show hello@1.0.0 --json',
      'rondo show loops/triage.toml --mermaid',
      'rondo show last --full',
    ],
    load: async () => (await import('./verbs/show.js')).show,
  },
  {
    name: 'check',
    group: DEFINITIONS_GROUP,
    arguments: '[files...]',
    description: 'Validate definitions without running them, and list turns in flight that a change would break.',
    options: [MODEL_FLAG, JSON_FLAG],
    examples: ['rondo check', 'rondo check loops/hello.json --json'],
    load: async () => (await import('./verbs/check.js')).check,
  },
  {
    name: 'plan',
    group: DEFINITIONS_GROUP,
    arguments: '<command> <file>',
    description: 'Convert a workflow or a definition between TOML and JSON, without a change: plan convert FILE.',
    options: [
      ['--to <format>', 'toml or json (default the other format)'],
      ['--out <file>', 'the file to write, which must not exist (default stdout)'],
      JSON_FLAG,
    ],
    examples: ['rondo plan convert loops/triage.toml', 'rondo plan convert triage.json --to toml --out triage.toml'],
    load: async () => (await import('./verbs/plan.js')).plan,
  },
  {
    name: 'runs',
    group: INSPECT_GROUP,
    arguments: '',
    description: 'List the turns of the store, the newest first.',
    options: [
      ['--status <status>', 'only turns that are ok, error, stopped, cancelled, paused, running or interrupted'],
      ['--limit <n>', 'the maximum number of turns'],
      JSON_FLAG,
    ],
    examples: ['rondo runs', 'rondo runs --status interrupted --json'],
    load: async () => (await import('./verbs/runs.js')).runs,
  },
  {
    name: 'status',
    group: INSPECT_GROUP,
    arguments: '<turn>',
    description: 'Show the status of a turn, or of all turns of a session, with input, output and usage.',
    options: [FULL_FLAG, JSON_FLAG],
    examples: ['rondo status last', 'rondo status s-1f0c --full', 'rondo status my-session --json'],
    load: async () => (await import('./verbs/status.js')).status,
  },
  {
    name: 'trace',
    group: INSPECT_GROUP,
    arguments: '<turn>',
    description:
      'Show the trace of a turn: as a tree with input, prompts, replies and output, or with --json one event per line.',
    options: [
      FULL_FLAG,
      ['--follow', 'print what is recorded, then everything new until the turn ends, whichever process runs it'],
      ['--json', 'print one TraceEvent per line'],
    ],
    examples: ['rondo trace last', 'rondo trace s-1f0c --follow', 'rondo trace s-1f0c --json | head -1'],
    load: async () => (await import('./verbs/trace.js')).trace,
  },
  {
    name: 'events',
    group: INSPECT_GROUP,
    arguments: '<session>',
    description: 'Show the conversation of a session: as text on a terminal, otherwise one envelope per line.',
    options: [
      ['--text', 'print text even if stdout is not a terminal'],
      FULL_FLAG,
      ['--follow', 'print what is recorded, then everything new until all turns of the session have ended'],
      ['--json', 'print one envelope per line'],
    ],
    examples: [
      'rondo events last --follow',
      'rondo events s-1f0c',
      'rondo events s-1f0c --text | less',
      'rondo events s-1f0c --json | head -1',
    ],
    load: async () => (await import('./verbs/events.js')).events,
  },
  {
    name: 'diff',
    group: INSPECT_GROUP,
    arguments: '<turn> <other>',
    description: 'Show the differences between two turns.',
    options: [JSON_FLAG],
    examples: ['rondo diff s-1f0c s-77ab'],
    load: async () => (await import('./verbs/diff.js')).diff,
  },
  {
    name: 'replay',
    group: INSPECT_GROUP,
    arguments: '<turn>',
    description:
      'Replay a turn from its journal without performing effects, and check that its code still does the same.',
    options: [['--now', 'use the current definitions instead of those that the turn started with'], JSON_FLAG],
    examples: ['rondo replay s-1f0c', 'rondo replay s-1f0c --now --json'],
    load: async () => (await import('./verbs/replay.js')).replay,
  },
  {
    name: 'approvals',
    group: ANSWER_GROUP,
    arguments: '',
    description: 'List the pending approvals, with their tools, call paths and arguments.',
    options: [
      ['--session <id>', 'only approvals of this session'],
      ['--full <approval>', 'only this approval, without abbreviations'],
      JSON_FLAG,
    ],
    examples: ['rondo approvals', 'rondo approvals --full mJ4hLv', 'rondo approvals --json'],
    load: async () => (await import('./verbs/approvals.js')).approvals,
  },
  {
    name: 'approve',
    group: ANSWER_GROUP,
    arguments: '<approval>',
    description: 'Approve a tool call and resume its turn.',
    options: [
      AS_FLAG,
      [
        '--when <schema>',
        'also approve later calls of this tool in this session that match a JSON Schema: JSON, @file or -',
      ],
      JSON_FLAG,
    ],
    examples: [
      'rondo approve s-1f0c.1:mJ4hLvYtC7D_uK1Y',
      'rondo approve mJ4hLv --as ada',
      'rondo approve mJ4hLv --when \'{"properties": {"amount": {"maximum": 20}}}\'',
    ],
    load: async () => (await import('./verbs/answer.js')).approve,
  },
  {
    name: 'deny',
    group: ANSWER_GROUP,
    arguments: '<approval>',
    description: 'Deny a tool call and resume its turn.',
    options: [['--reason <text>', 'the reason, for the agent and the journal'], AS_FLAG, JSON_FLAG],
    examples: ['rondo deny mJ4hLv --reason "too much" --as ada'],
    load: async () => (await import('./verbs/answer.js')).deny,
  },
  {
    name: 'resolve',
    group: ANSWER_GROUP,
    arguments: '<effect>',
    description: 'Resolve an effect in doubt and resume its turn.',
    options: [
      ['--retry', 'it did not happen: perform it'],
      ['--result <json>', 'it happened with this result: JSON, @file or -'],
      ['--fail', 'record it as failed'],
      AS_FLAG,
      JSON_FLAG,
    ],
    examples: ['rondo resolve s-1f0c.1/2/0 --retry', 'rondo resolve s-1f0c.1/2/0 --result \'{"id": 7}\' --as ada'],
    load: async () => (await import('./verbs/resolve.js')).resolve,
  },
  {
    name: 'signal',
    group: ANSWER_GROUP,
    arguments: '<turn> <name>',
    description:
      'Send a signal to a turn, or to any turn of a session, and resume the turn that waits for it; or to a hosted loop. ' +
      'A turn or session with the id takes precedence.',
    options: [
      ['--payload <json>', 'what the wait receives: JSON, @file, or - for stdin (default nothing)'],
      ['--id <delivery>', 'an idempotency key: a signal with the same id is received once (default a new one)'],
      JSON_FLAG,
    ],
    examples: [
      'rondo signal s-1f0c paid --payload \'{"amount": 5}\'',
      'rondo signal my-session reload',
      'rondo signal s-1f0c paid --payload @payment.json --id invoice-17 --json',
      'rondo signal watch-prices price-changed --payload \'{"sku": "lamp-1"}\'',
    ],
    load: async () => (await import('./verbs/signal.js')).signal,
  },
  ...proofVerbs,
  ...systemVerbs,
];
