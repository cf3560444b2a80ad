/**
 * `edit_file`: a text in a file for another. The old text must stand there exactly once, when a person is asked and again
 * when it is done, so an approval is never used on another place. Only UTF-8 is edited; all other bytes stay as they are.
 */
import { actingTool, type BoxTool } from './box.js';
import { foreseen, LARGEST, type Plan, performed } from './change.js';
import { type Fitting, inputOf } from './input.js';
import { occurrences } from './occurrences.js';
import { named, refusal, unusable } from './refusal.js';
import type { Roots } from './roots.js';
import { cut, exactText, linesOf } from './text.js';

const inputSchema = inputOf({
  path: { type: 'string', min: 1, description: 'The file.' },
  old: {
    type: 'string',
    min: 1,
    max: LARGEST,
    description: 'The text to replace, exactly as in the file, without line numbers, and long enough to be there once.',
  },
  new: { type: 'string', max: LARGEST, description: 'What stands there instead.' },
  all: { type: 'boolean', optional: true, description: 'Replaces every occurrence, however many.' },
});

type Editing = Fitting<typeof inputSchema>;

export function editFile(roots: Roots): BoxTool<Editing> {
  return actingTool({
    name: 'edit_file',
    description:
      'Replaces a text in a file with another. The old text must stand there exactly once, unless all is true.',
    inputSchema,
    safety: 'once',
    ask: async (input) => {
      const { path, diff } = await foreseen(roots, input.path, planOf(input));
      return `Edit ${path}:\n${diff}`;
    },
    target: ({ path }) => roots.target(path),
    execute: (input, { approvedTarget }) => performed(roots, input.path, planOf(input), approvedTarget),
  });
}

function planOf(input: Editing): Plan {
  return (present) => {
    const { path, all = false } = input;
    if (present === undefined) throw unusable(path, { code: 'ENOENT' });
    const text = exactText(present);
    if (text === undefined) throw refusal(`${named(path)} is not UTF-8 text; an edit would damage it.`);
    if (input.old === input.new) throw refusal(`old and new are the same; nothing would change in ${named(path)}.`);
    const { old, next, places } = found(text, input);
    if (places.length === 0) throw refusal(`old does not stand in ${named(path)}. ${nearby(text, old)}`);
    if (places.length > 1 && !all) throw refusal(several(path, text, places));
    if (text.length + places.length * next.length <= LARGEST) return replaced(text, old, next, places);
    throw refusal(`${named(path)} would become longer than ${LARGEST} characters; use run_command to change it.`);
  };
}

interface Finding {
  readonly old: string;
  readonly next: string;
  readonly places: readonly number[];
}

/** Who views a file with Windows line ends does not see them, so a text is found without them too. */
function found(text: string, input: Editing): Finding {
  const exact = { old: input.old, next: input.new, places: occurrences(text, input.old) };
  if (exact.places.length > 0 || !text.includes('\r\n') || input.old.includes('\r')) return exact;
  const windows = (part: string): string => part.replace(/\r?\n/g, '\r\n');
  const old = windows(input.old);
  return { old, next: windows(input.new), places: occurrences(text, old) };
}

function replaced(text: string, old: string, next: string, places: readonly number[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const at of places) {
    // Those that overlap the one before are gone with it.
    if (at < from) continue;
    parts.push(text.slice(from, at), next);
    from = at + old.length;
  }
  parts.push(text.slice(from));
  return parts.join('');
}

function several(path: string, text: string, places: readonly number[]): string {
  const first = places.slice(0, 8).map((at) => text.slice(0, at).split('\n').length);
  const more = places.length > first.length ? ', …' : '';
  return (
    `old stands in ${named(path)} ${places.length} times (lines ${first.join(', ')}${more}). ` +
    'Take more of the lines around the one you mean, or set all to true.'
  );
}

/** The lines that look most like what was looked for: those that differ in white space only. */
function nearby(text: string, old: string): string {
  const lines = linesOf(text);
  const trimmed = lines.map((line) => line.trim());
  const wanted = linesOf(old).map((line) => line.trim());
  for (const line of wanted.filter(({ length }) => length > 2).slice(0, 20)) {
    const at = trimmed.indexOf(line);
    if (at === -1) continue;
    const from = Math.max(0, at - 2);
    const shown = lines.slice(from, at + 5).map((near, i) => `${from + i + 1}\t${cut(near, 200)}`);
    return `It must match exactly, white space included. The nearest lines are:\n${shown.join('\n')}`;
  }
  return 'Nothing in it is like it; view the file again.';
}
