// Guards of exit codes, of hidden text and of recorded damage.

import { afterAll } from 'vitest';
import { cleanUp } from '../support/sqlite-fixture.mjs';
import { displayChecks, displayParts, recordChecks } from './damage-checks.js';
import { kernelParts } from './library.js';
import { guardsOf, proveGuards } from './prove.js';

afterAll(cleanUp);

const display = guardsOf(displayChecks);
const record = guardsOf(recordChecks);

proveGuards(displayParts, [
  display('cli.output', 'a command whose output is lost does not exit successfully', 'lost-output-fails-a-success', {
    take: 1,
  }),
  display(
    'cli.output',
    'a failed or paused turn keeps its exit code when its output is lost',
    'lost-output-fails-a-success',
    { take: 0 },
  ),
  display(
    'cli.output',
    'a failed or paused turn keeps its exit code when its output is lost',
    'closed-reader-is-no-failure',
    'always',
  ),
  display('approval.hidden', 'an approval shows the end of a long command', 'tail-of-command-shown', 'drop'),
  display(
    'approval.hidden',
    'an approval states how many characters of a command are hidden',
    'hidden-characters-counted',
    { value: '1' },
  ),
  display('approval.hidden', 'no text can imitate the note on hidden characters', 'hidden-note-brackets-escaped', {
    literal: ['|[⟪⟫]', ''],
  }),
]);

proveGuards(kernelParts, [
  record('sqlite.record', 'a missing anchor stays on record across openings', 'findings-put-on-record', { take: 1 }),
  record('sqlite.record', 'a missing anchor stays on record across openings', 'recorded-damage-reported', 'drop'),
  record(
    'sqlite.record',
    'a damaged session stays refused when a later opening checks less',
    'recorded-damage-refused',
    'never',
  ),
  record('sqlite.record', 'damage that a read finds is recorded', 'damage-of-reads-recorded', { value: '() => {}' }),
]);
