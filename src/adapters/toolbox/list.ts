/** `list_files`: what is in a directory. */
import { type BoxTool, readingTool } from './box.js';
import { type Fitting, inputOf } from './input.js';
import type { Roots } from './roots.js';
import { cut } from './text.js';
import { walk } from './walk.js';

const LIMIT = 500;
const MOST = 2000;
/** Characters that all names together may have. */
const SIZE = 60_000;
const NOTES = 5;

const inputSchema = inputOf({
  path: { type: 'string', optional: true, description: 'The directory; the first root unless told.' },
  depth: { type: 'integer', optional: true, min: 1, max: 20, description: 'How many levels to list; 1 unless told.' },
  hidden: { type: 'boolean', optional: true, description: 'Also what begins with a dot.' },
  limit: { type: 'integer', optional: true, min: 1, max: MOST, description: `How many entries; ${LIMIT} unless told.` },
});

export function listFiles(roots: Roots): BoxTool<Fitting<typeof inputSchema>> {
  return readingTool({
    name: 'list_files',
    description:
      'Lists a directory, sorted. Directories end with "/", links with "@" (they are not followed), pipes and devices with "|". ' +
      'node_modules is listed but only looked into when it is the path.',
    inputSchema,
    execute: ({ path = '.', depth = 1, hidden = false, limit = LIMIT }, { abortSignal: signal }) =>
      roots.open(path, 'directory', async (top) => {
        const entries: string[] = [];
        const notes: string[] = [];
        const skip = (at: string, reason: string): void => void (notes.length < NOTES && notes.push(`${at} ${reason}`));
        let size = 0;
        const visit = (found: { readonly kind: keyof typeof ends; readonly path: string }): boolean => {
          const shown = `${found.path}${ends[found.kind]}`;
          size += shown.length;
          if (entries.length === limit || size > SIZE) return false;
          entries.push(shown);
          return true;
        };
        const whole = await walk(roots, top, { depth, hidden, signal, visit, skip });
        if (!whole)
          notes.unshift(`There are more than these ${entries.length}; name a directory in it or a lower depth`);
        const shown = { path: roots.shown(top.real), entries };
        return notes.length === 0 ? shown : { ...shown, note: cut(`${notes.join('; ')}.`, 2000) };
      }),
  });
}

const ends = { file: '', directory: '/', link: '@', other: '|' } as const;
