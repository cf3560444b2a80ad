/** `list_files`: what is in a directory. */
import { defineReadTool, type ToolboxTool } from './define-tool.js';
import { defineInput, type InferInput } from './input-schema.js';
import type { Roots } from './roots.js';
import { truncate } from './text.js';
import { walkDirectory } from './walk-directory.js';

const DEFAULT_LIMIT = 500;
const MAX_LIMIT = 2000;
/** Characters that all names together may have. */
const MAX_OUTPUT_CHARS = 60_000;
const MAX_NOTES = 5;

const inputSchema = defineInput({
  path: { type: 'string', optional: true, description: 'The directory. Default: the first root.' },
  depth: { type: 'integer', optional: true, min: 1, max: 20, description: 'How many levels to list. Default: 1.' },
  hidden: { type: 'boolean', optional: true, description: 'Also what begins with a dot.' },
  limit: {
    type: 'integer',
    optional: true,
    min: 1,
    max: MAX_LIMIT,
    description: `How many entries. Default: ${DEFAULT_LIMIT}.`,
  },
});

export function listFilesTool(roots: Roots): ToolboxTool<InferInput<typeof inputSchema>> {
  return defineReadTool({
    name: 'list_files',
    description:
      'Lists a directory, sorted. Directories end with "/", links with "@" (they are not followed), pipes and devices with "|". ' +
      'node_modules is listed but only looked into when it is the path.',
    inputSchema,
    execute: ({ path = '.', depth = 1, hidden = false, limit = DEFAULT_LIMIT }, { abortSignal: signal }) =>
      roots.open(path, 'directory', async (top) => {
        const entries: string[] = [];
        const notes: string[] = [];
        const skip = (at: string, reason: string): void =>
          void (notes.length < MAX_NOTES && notes.push(`${at} ${reason}`));
        let size = 0;
        const visit = (found: { readonly kind: keyof typeof kindSuffixes; readonly path: string }): boolean => {
          const shown = `${found.path}${kindSuffixes[found.kind]}`;
          size += shown.length;
          if (entries.length === limit || size > MAX_OUTPUT_CHARS) return false;
          entries.push(shown);
          return true;
        };
        const whole = await walkDirectory(roots, top, { depth, hidden, signal, visit, skip });
        if (!whole)
          notes.unshift(`There are more than these ${entries.length}; name a directory in it or a lower depth`);
        const shown = { path: roots.displayPath(top.realPath), entries };
        return notes.length === 0 ? shown : { ...shown, note: truncate(`${notes.join('; ')}.`, 2000) };
      }),
  });
}

const kindSuffixes = { file: '', directory: '/', link: '@', other: '|' } as const;
