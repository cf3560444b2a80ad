// The guards of what an operator is told, each broken in turn.

import { afterAll } from 'vitest';
import { cleanUp } from '../../src/adapters/sqlite/fixtures/stage.mjs';
import type { RequirementId } from '../requirements.js';
import { type Display, displayChecks, recordChecks } from './damage-checks.js';
import { type Library, type Shelf, Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

afterAll(cleanUp);

const display: Shelf = {
  rings: /^(?:base|protocol|journal|surfaces[/]cli)[/][^/]*$|^surfaces[/]settings\.ts$/,
  parts: ['surfaces/cli/terminal.js', 'surfaces/cli/card.js', 'surfaces/cli/paint.js', 'base/excerpt.js'],
};

function shows(
  id: RequirementId,
  disaster: keyof typeof displayChecks,
  file: string,
  from: string,
  to: string,
): Guard<Display> {
  return { id, disaster, check: displayChecks[disaster], file, from, to };
}

function records(disaster: keyof typeof recordChecks, file: string, from: string, to: string): Guard<Library> {
  return { id: 'sqlite.record', disaster, check: recordChecks[disaster], file: `adapters/sqlite/${file}`, from, to };
}

proveGuards(
  () => new Workshop<Display>(display),
  [
    shows(
      'cli.output',
      'a verb whose output is lost does not end as a success',
      'surfaces/cli/terminal.ts',
      'return code === exit.ok ? exit.fault : code;',
      'return code;',
    ),
    shows(
      'cli.output',
      'a turn that failed or paused keeps its code when its output is lost',
      'surfaces/cli/terminal.ts',
      'return code === exit.ok ? exit.fault : code;',
      'return exit.fault;',
    ),
    shows(
      'cli.output',
      'a turn that failed or paused keeps its code when its output is lost',
      'surfaces/cli/terminal.ts',
      '!READER_GONE.has(error.code)',
      'error !== undefined',
    ),
    shows(
      'approval.hidden',
      'the end of a command that is to be approved is shown',
      'surfaces/cli/card.ts',
      '...block(tail, shape)];',
      '];',
    ),
    shows(
      'approval.hidden',
      'it is stated how much of a command is hidden',
      'base/shown.ts',
      'const hidden = charactersIn(middle);',
      'const hidden = 1;',
    ),
    shows('approval.hidden', 'no text imitates the statement of how much is hidden', 'base/shown.ts', '|[⟪⟫])', ')'),
  ],
);

proveGuards(
  () => new Workshop<Library>(),
  [
    records(
      'an anchor that was missing stays on record after many openings',
      'open.ts',
      'const findings = recordFindings(driver, found, { path: database, accept, now: now() });',
      'const findings = found;',
    ),
    records(
      'an anchor that was missing stays on record after many openings',
      'damage-record.ts',
      '...[...byKey.values()].filter(isOpen).map(({ incident }) => incident)',
      '',
    ),
    records(
      'a session that was found damaged stays refused by an opening that looks less closely',
      'damage-record.ts',
      'if (isRefused(incident) && !found.refusals.has(session))',
      'if (incident.closed !== undefined)',
    ),
    records(
      'damage that a read comes upon is on record',
      'local-store.ts',
      'failed: (error) => this.maintenance.noteFault(error),',
      'failed: () => {},',
    ),
  ],
);
