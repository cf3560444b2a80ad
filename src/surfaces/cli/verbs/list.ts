/** `rondo list`: lists the loops of the project. */
import { shortVersion } from '../../../base/short-version.js';
import type { RegisteredLoop } from '../../../loops/registry.js';
import { loadLoops, loadSettings } from '../../compose.js';
import { warnBadFiles, warnIgnoredKeys } from '../definitions.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, type VerbHandler } from '../verb.js';

/** Handles `rondo list`. */
export const list: VerbHandler = async ({ settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { registry, badFiles, warnings } = await loadLoops(settings);
  const loops = registry.list();
  if (json) await terminal.printJson({ loops: loops.map(documentOf), bad: badFiles });
  else if (loops.length > 0) {
    const { renderTable } = await import('../table.js');
    const rows = loops.map(rowOf);
    const head = ['LOOP', 'VERSION', 'KIND', 'DESCRIPTION'];
    await terminal.print(`${renderTable(rows, { ...terminal.displayOf(), head })}\n`);
  }
  if (loops.length === 0) terminal.printToStderr(`There are no loops in ${sanitizeText(settings.loopsDirectory)}.`);
  warnBadFiles(badFiles, terminal);
  warnIgnoredKeys(warnings, terminal);
  return exitCodes.ok;
};

function documentOf({ definition, origin: { file } }: RegisteredLoop): object {
  const { id, version, kind, name, description } = definition;
  return {
    id,
    version,
    kind,
    name,
    ...(description !== undefined && { description }),
    ...(file !== undefined && { file }),
  };
}

/** The kind of an agent or of a body in code is more specific than in the document, where both are composites. */
function rowOf({ definition, definedLoop }: RegisteredLoop): readonly string[] {
  const { id, version, kind, name, description = name === id ? '' : name, composite } = definition;
  const isCode = composite !== undefined && definedLoop !== undefined;
  return [id, shortVersion(version), composite?.agent !== undefined ? 'agent' : isCode ? 'code' : kind, description];
}
