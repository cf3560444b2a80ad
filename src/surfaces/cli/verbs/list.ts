/** `rondo list`: lists the loops of the project. */
import { loadLoops, loadSettings } from '../../compose.js';
import { warnBadFiles, warnIgnoredKeys } from '../definitions.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, type VerbHandler } from '../verb.js';

/** Handles `rondo list`. */
export const list: VerbHandler = async ({ settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { registry, badFiles, warnings } = await loadLoops(settings);
  const loops = registry.list().map(({ definition: { id, version, kind, name, description }, origin: { file } }) => ({
    id,
    version,
    kind,
    name,
    ...(description !== undefined && { description }),
    ...(file !== undefined && { file }),
  }));
  if (json) await terminal.printJson({ loops, bad: badFiles });
  else if (loops.length > 0) {
    const { renderTable } = await import('../table.js');
    const rows = loops.map(({ id, version, kind, name, description }) => [id, version, kind, description ?? name]);
    const head = ['LOOP', 'VERSION', 'KIND', 'DESCRIPTION'];
    await terminal.print(`${renderTable(rows, { ...terminal.displayOf(), head })}\n`);
  }
  if (loops.length === 0) terminal.printToStderr(`There are no loops in ${sanitizeText(settings.loopsDirectory)}.`);
  warnBadFiles(badFiles, terminal);
  warnIgnoredKeys(warnings, terminal);
  return exitCodes.ok;
};
