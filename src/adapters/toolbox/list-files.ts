/** The tool `list_files`: lists the entries of a directory. */
import { defineReadTool, type ToolboxTool } from './define-tool.js';
import { defineInput, type InferInput } from './input-schema.js';
import type { Roots } from './roots.js';
import { truncate } from './text.js';
import { walkDirectory } from './walk-directory.js';

const DEFAULT_LIMIT = 500;
const MAX_LIMIT = 2000;
/** The maximum total length of the listed paths. */
const MAX_OUTPUT_CHARS = 60_000;
const MAX_NOTES = 5;

const inputSchema = defineInput({
  path: { type: 'string', optional: true, description: 'The directory. Default: the first root.' },
  depth: { type: 'integer', optional: true, min: 1, max: 20, description: 'The number of levels to list. Default: 1.' },
  hidden: { type: 'boolean', optional: true, description: 'Includes names that begin with a dot.' },
  limit: {
    type: 'integer',
    optional: true,
    min: 1,
    max: MAX_LIMIT,
    description: `The maximum number of entries. Default: ${DEFAULT_LIMIT}.`,
  },
});

/** Creates the tool `list_files`. */
export function listFilesTool(allRoots: Roots): ToolboxTool<InferInput<typeof inputSchema>> {
  return defineReadTool({
    name: 'list_files',
    description:
      'Lists a directory, sorted. Directories end with "/", links with "@" (they are not followed), pipes and devices with "|". ' +
      'node_modules is listed, but its content only if it is the path.',
    inputSchema,
    execute: ({ path = '.', depth = 1, hidden = false, limit = DEFAULT_LIMIT }, options) => {
      const roots = allRoots.confinedTo(options.confinement);
      const { abortSignal: signal } = options;
      return roots.open(path, 'directory', async (top) => {
        const entries: string[] = [];
        const notes: string[] = [];
        const onSkip = (skippedPath: string, reason: string): void =>
          void (notes.length < MAX_NOTES && notes.push(`${skippedPath} ${reason}`));
        let charCount = 0;
        const visit = (entry: { readonly kind: keyof typeof kindSuffixes; readonly path: string }): boolean => {
          const line = `${entry.path}${kindSuffixes[entry.kind]}`;
          charCount += line.length;
          if (entries.length === limit || charCount > MAX_OUTPUT_CHARS) return false;
          entries.push(line);
          return true;
        };
        const isComplete = await walkDirectory(roots, top, {
          depth,
          includeHidden: hidden,
          signal,
          visit,
          onSkip,
        });
        if (!isComplete)
          notes.unshift(
            `There are more than these ${entries.length} entries; use a subdirectory, a lower depth or a higher limit`,
          );
        const output = { path: roots.displayPath(top.realPath), entries };
        return notes.length === 0 ? output : { ...output, note: truncate(`${notes.join('; ')}.`, 2000) };
      });
    },
  });
}

const kindSuffixes = { file: '', directory: '/', link: '@', other: '|' } as const;
