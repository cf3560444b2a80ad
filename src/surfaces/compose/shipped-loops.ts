/** The loops behind verbs that work without a binding. They are definitions like those of a project. */
import type { FoundDefinition } from '../../adapters/files/index.js';
import { shippedLoopsOf } from '../../loops/plan/bind-plan.js';
import type { LoopDef } from '../../protocol/loop.js';
import type { ProjectSettings } from './project-settings.js';

const VERB_INPUT = {
  type: 'object',
  properties: { verb: { type: 'string' }, args: { type: 'array', items: { type: 'string' } }, raw: { type: 'string' } },
  required: ['verb', 'args', 'raw'],
} as const;

/** A tool of the toolbox that only reads. */
function readTool(id: string, implementation: string): LoopDef {
  const schemas = { inputSchema: { type: 'object' }, outputSchema: {} } as const;
  return { id, name: id, version: '1.0.0', kind: 'tool', ...schemas, tool: { implementation, safety: 'pure' } };
}

/** `view PATH`: shows a file, or lists a directory. */
const VIEW: LoopDef = {
  id: 'rondo.view',
  name: 'rondo.view',
  description: 'Shows a file, or lists a directory, of the project.',
  version: '1.0.0',
  kind: 'composite',
  inputSchema: VERB_INPUT,
  outputSchema: {},
  composite: {
    plan: {
      steps: [
        { name: 'file', loop: 'rondo.view_file', input: { path: 'optional:$.input.args[0]' }, on_error: 'skip' },
        {
          name: 'directory',
          condition: 'has_errors',
          loop: 'rondo.list_files',
          input: { path: 'optional:$.input.args[0]' },
        },
      ],
    },
  },
};

const SHIPPED_LOOPS: ReadonlyMap<string, readonly LoopDef[]> = new Map([
  [
    'rondo.view',
    [VIEW, readTool('rondo.view_file', 'toolbox:view_file'), readTool('rondo.list_files', 'toolbox:list_files')],
  ],
]);

/** Returns the shipped loops that the verbs of these definitions stand for. Their paths are relative to the project. */
export function shippedDefinitions(
  definitions: readonly FoundDefinition[],
  { cwd, config }: ProjectSettings,
): readonly FoundDefinition[] {
  const verbs = Object.fromEntries(config.verbs);
  const ids = new Set(
    definitions.flatMap((item) => {
      const plan = 'definition' in item ? item.definition.composite?.plan : undefined;
      return plan === undefined ? [] : shippedLoopsOf(plan, verbs);
    }),
  );
  // They are no files of the project, and need no trust: they read what is below its directory.
  const origin = { directory: cwd, trusted: true };
  return [...ids].flatMap((id) =>
    (SHIPPED_LOOPS.get(id) ?? []).map((definition) => ({ file: cwd, origin, definition })),
  );
}
