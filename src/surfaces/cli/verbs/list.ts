/** `list`: the loops of the project. */
import { loadLoops, settingsOf } from '../../compose.js';
import { warnBad, warnMistakes } from '../definitions.js';
import { plain } from '../paint.js';
import { type Act, exit } from '../verb.js';

export const list: Act = async ({ asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const { registry, bad, warnings } = await loadLoops(settings);
  const loops = registry.list().map(({ definition: { id, version, kind, name, description }, origin: { file } }) => ({
    id,
    version,
    kind,
    name,
    ...(description !== undefined && { description }),
    ...(file !== undefined && { file }),
  }));
  if (json) await terminal.json({ loops, bad });
  else if (loops.length > 0) {
    const { table } = await import('../table.js');
    const rows = loops.map(({ id, version, kind, name, description }) => [id, version, kind, description ?? name]);
    const head = ['LOOP', 'VERSION', 'KIND', 'WHAT IT DOES'];
    await terminal.print(`${table(rows, { ...terminal.look(), head })}\n`);
  }
  if (loops.length === 0) terminal.say(`There are no loops in ${plain(settings.loops)}.`);
  warnBad(bad, terminal);
  warnMistakes(warnings, terminal);
  return exit.ok;
};
