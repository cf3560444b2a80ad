// The guards of the process that watches a driver of the conformance suite, each broken in turn.

import { type Watching, watching, watchingChecks } from './driver-checks.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

function guard(promise: keyof typeof watchingChecks, from: string, to: string): Guard<Watching> {
  const check = watchingChecks[promise];
  return { id: 'lsem.suite.driver', disaster: promise, check, file: 'surfaces/cli/driver/watch.ts', from, to };
}

proveGuards(
  () => new Workshop<Watching>(watching),
  [
    guard(
      'a process that a driver ends costs the check that it ended in',
      'lose(`the process of the driver ended (${signal ?? `exit code ${code}`})`)',
      "settle({ refused: 'it ended' })",
    ),
    guard(
      'a process that a driver ends costs the check that it ended in',
      'decided.set(check, failed(check, end.lost));',
      '',
    ),
    guard(
      'what was judged before a process ended is kept',
      'if (progress.result !== undefined) decided.set(progress.result.id, progress.result);',
      '',
    ),
    guard(
      'a process that a driver blocks costs one check, and is ended',
      'timer = setTimeout(late, limitMs);\n      if (progress.ready)',
      'if (progress.ready)',
    ),
    guard(
      'a process that a driver blocks costs one check, and is ended',
      'end(child);\n      resolve(how);',
      'resolve(how);',
    ),
    guard('a process that a driver started ends with it', 'process.kill(-pid,', 'process.kill(pid,'),
    guard('a driver that takes down five processes is given up', 'lost === MAX_LOST)', 'lost === MAX_LOST + 1)'),
    guard('what a driver writes to stdout is not in the report', "['ignore', 2, 2, 'ipc']", "['ignore', 1, 2, 'ipc']"),
  ],
);
