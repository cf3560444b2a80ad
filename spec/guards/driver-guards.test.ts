// The guards of the process that watches a driver of the conformance suite, each broken in turn.

import type { RequirementId } from '../requirements.js';
import { type Watching, watching, watchingChecks } from './driver-checks.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

type Promised = keyof typeof watchingChecks;

function guard(id: RequirementId, promise: Promised, from: string, to: string): Guard<Watching> {
  return { id, disaster: promise, check: watchingChecks[promise], file: 'surfaces/cli/driver/watch.ts', from, to };
}

proveGuards(
  () => new Workshop<Watching>(watching),
  [
    guard(
      'lsem.suite.driver',
      'a process that a driver ends costs the check that it ended in',
      'lose(`the process of the driver ended (${signal ?? `exit code ${code}`})`)',
      "settle({ refused: 'it ended' })",
    ),
    guard(
      'lsem.suite.driver',
      'a process that a driver ends costs the check that it ended in',
      'decided.set(check, failed(check, end.lost));',
      '',
    ),
    guard(
      'lsem.suite.driver',
      'what was judged before a process ended is kept',
      'if (progress.result !== undefined) decided.set(progress.result.id, progress.result);',
      '',
    ),
    guard(
      'lsem.suite.driver',
      'a process that a driver blocks costs one check, and is ended',
      'timer = setTimeout(late, limitMs);\n      if (progress.ready)',
      'if (progress.ready)',
    ),
    guard(
      'lsem.suite.driver',
      'a process that a driver blocks costs one check, and is ended',
      'end(child);\n      resolve(how);',
      'resolve(how);',
    ),
    guard(
      'lsem.suite.driver',
      'what a driver sends after its report does not delay the end',
      "child.off('message', onMessage);",
      '',
    ),
    guard(
      'lsem.suite.driver',
      'a process that a driver started ends with it',
      'process.kill(-pid,',
      'process.kill(pid,',
    ),
    guard(
      'lsem.suite.driver',
      'a driver that takes down five processes is given up',
      'lost === MAX_LOST)',
      'lost === MAX_LOST + 1)',
    ),
    guard(
      'lsem.suite.driver',
      'what a driver writes to stdout is not in the report',
      "['ignore', 2, 2, 'ipc']",
      "['ignore', 1, 2, 'ipc']",
    ),
  ],
);
