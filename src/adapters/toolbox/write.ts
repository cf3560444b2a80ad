/**
 * `write_file`: a whole file, new or in place of another. What a person approves is the content, which is in the input.
 * The diff they see is against the file as it is then; `expect` makes that binding, however much later it is done.
 */
import { actingTool, type BoxTool } from './box.js';
import { foreseen, LARGEST, type Plan, performed } from './change.js';
import { type Fitting, inputOf } from './input.js';
import { digestOf } from './read.js';
import { named, refusal } from './refusal.js';
import type { Roots } from './roots.js';

/** That there is no file yet. */
const NONE = 'none';

const inputSchema = inputOf({
  path: { type: 'string', min: 1, description: 'The file. Directories that lead to it are made.' },
  content: { type: 'string', max: LARGEST, description: 'All that the file is to hold.' },
  expect: {
    type: 'string',
    optional: true,
    min: 1,
    max: 64,
    description: `Writes only if the file that is replaced has this digest (from view_file), or, with "${NONE}", if there is none.`,
  },
});

type Writing = Fitting<typeof inputSchema>;

export function writeFile(roots: Roots): BoxTool<Writing> {
  return actingTool({
    name: 'write_file',
    description: 'Writes a whole file, new or in place of another. To change a part of a file use edit_file.',
    inputSchema,
    safety: 'once',
    ask: async (input) => {
      const { path, diff } = await foreseen(roots, input.path, planOf(input));
      return `Write ${path}:\n${diff}`;
    },
    target: ({ path }) => roots.target(path),
    execute: (input, { approvedTarget }) => performed(roots, input.path, planOf(input), approvedTarget),
  });
}

function planOf({ path, content, expect }: Writing): Plan {
  return (present) => {
    const there = present === undefined ? NONE : digestOf(present);
    if (expect === undefined || expect === there) return content;
    const instead = present === undefined ? 'there is no such file' : `the file there has the digest ${there}`;
    throw refusal(`${named(path)} was not written: it is not what was expected, as ${instead}. View it again.`);
  };
}
