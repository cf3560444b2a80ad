// The guards of the trace of code bodies and of the conformance suite, each broken in turn.

import type { RequirementId } from '../requirements.js';
import { conformanceChecks, type Judging, judging } from './conformance-checks.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

type Disaster = keyof typeof conformanceChecks;

function guard(id: RequirementId, disaster: Disaster, file: string, from: string, to: string): Guard<Judging> {
  return { id, disaster, check: conformanceChecks[disaster], file, from, to };
}

const suite = 'testing/conformance';

const guards = [
  guard(
    'lsem.5.body',
    'an effect of a code body is not told as that of a tool',
    'views/trace.ts',
    "kind === 'tool' && started.form === undefined && name === started.name",
    "kind === 'tool' && name === started.name",
  ),
  guard(
    'lsem.5.body',
    'an effect of a code body is not told as that of a prompt',
    'views/trace.ts',
    "return started.form === 'code' ? 'body' : 'backend';",
    "return 'backend';",
  ),
  guard(
    'lsem.suite.known',
    'a known failure that is gone turns the run red',
    `${suite}/judge.ts`,
    "if (row.status === 'pass') return reminderOf(row, reason);",
    "if (row.status === 'pass') return row;",
  ),
  guard(
    'lsem.suite.known',
    'a known failure is no pass of what must hold',
    `${suite}/report.ts`,
    "if (musts.some(({ status }) => status === 'known-failure')) return 'known-failure';",
    "if (musts.some(({ status }) => status === 'known-failure')) return 'pass';",
  ),
  guard(
    'lsem.suite.driver',
    'what is no runtime is not taken for one that refuses everything',
    `${suite}/stage.ts`,
    'demand(usable, `open gave ${show(opened)}, not a runtime with register and run`);',
    '',
  ),
  guard(
    'lsem.suite.text',
    'an event that is nested deep is an event',
    `${suite}/events.ts`,
    'const event = jsonCopy(given);',
    'const event = JSON.parse(JSON.stringify(given));',
  ),
  guard(
    'lsem.suite.text',
    'an event that is used again is recorded as it was',
    `${suite}/recording.ts`,
    'this.raw.push(held(event));',
    'this.raw.push(event);',
  ),
  guard(
    'lsem.suite.text',
    'what comes when a call is over is waited for',
    `${suite}/judge.ts`,
    'await new Promise((resolve) => setTimeout(resolve, LATE_MS));',
    '',
  ),
];

proveGuards(() => new Workshop<Judging>(judging), guards);
