/** Declares the verbs of workers and of the hosted loops that they run. */
import { AS_FLAG, JSON_FLAG } from './system-verbs.js';
import type { Verb } from './verb.js';

const RUN_GROUP = 'Run';

/** The verbs of workers and hosted loops. */
export const workerVerbs: readonly Verb[] = [
  {
    name: 'worker',
    group: RUN_GROUP,
    arguments: '',
    description:
      'Continue the turns that are due: after a timer, a signal, an answer, an expiry or an interruption; and run ' +
      'the turns of hosted loops.',
    options: [
      ['--once', 'continue what is due now, and exit; the exit code is 0 also if a turn failed: see its status'],
      ['--concurrency <n>', 'how many turns run at the same time (default 16)'],
      ['--json', 'print the result of each turn on a line'],
    ],
    examples: ['rondo worker', 'rondo worker --once --json'],
    load: async () => (await import('./verbs/worker.js')).worker,
  },
  {
    name: 'host',
    group: RUN_GROUP,
    arguments: '<command> [loop]',
    description:
      'Host loops, whose turns a worker runs one after another: start, show, pause, resume or stop one, named by its id ' +
      'or its file.',
    commands: [
      ['start <file>', 'start a hosted loop; a worker runs its turns'],
      ['status [loop]', 'show one, or list all'],
      ['pause <loop>', 'start no turn until it is resumed'],
      ['resume <loop>', 'go on after a pause'],
      ['stop <loop>', 'stop it for good; its id cannot be used again'],
    ],
    options: [
      ['--turns', 'status: one line for each turn, with its receipt, its cause, and what followed'],
      ['--reason <text>', 'pause, resume, stop: the reason to record'],
      AS_FLAG,
      JSON_FLAG,
    ],
    examples: [
      'rondo host start loops/watch-prices.toml',
      'rondo host status',
      'rondo host status watch-prices --turns',
      'rondo host pause watch-prices --as ada --reason "holiday"',
      'rondo host stop watch-prices --json',
    ],
    load: async () => (await import('./verbs/host.js')).host,
  },
];
