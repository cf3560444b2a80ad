// A project with context files, and hosts that read them: real files in a temporary directory.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { contextFilesIn } from '../../src/adapters/files/context-files.js';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { seededIds } from '../../src/adapters/system/seeded-ids.js';
import { builtinTools } from '../../src/adapters/tools/index.js';
import { Host, type HostOptions } from '../../src/host/host.js';
import type { ModelProvider } from '../../src/loops/model.js';
import { Registry } from '../../src/loops/registry.js';
import type { ToolFunction } from '../../src/loops/tool-implementation.js';
import type { ModelCallOptions, ModelMessage } from '../../src/protocol/model.js';
import { ManualClock } from '../../src/testing/manual-clock.js';

/** A directory with these files, and an empty neighbour `outside`. */
export interface ContextProject {
  readonly directory: string;
  readonly outside: string;
  write(path: string, content: string | Uint8Array): string;
  remove(): void;
}

/** Creates a project in a temporary directory. */
export function contextProject(files: { readonly [path: string]: string } = {}): ContextProject {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-context-')));
  const directory = join(parent, 'project');
  const outside = join(parent, 'outside');
  for (const path of [directory, outside]) mkdirSync(path);
  const write = (path: string, content: string | Uint8Array): string => {
    const file = join(directory, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    return file;
  };
  for (const [path, content] of Object.entries(files)) write(path, content);
  return { directory, outside, write, remove: () => rmSync(parent, { recursive: true, force: true }) };
}

/** Calls `work` with a project, and removes the project afterwards. */
export async function withContext(
  files: { readonly [path: string]: string },
  work: (project: ContextProject) => Promise<void>,
): Promise<void> {
  const project = contextProject(files);
  try {
    await work(project);
  } finally {
    project.remove();
  }
}

interface ContextHostOptions extends Partial<HostOptions> {
  readonly models?: readonly ModelProvider[];
  readonly tools?: { readonly [name: string]: ToolFunction };
}

/** Returns a host whose definitions come from the directory of the project. */
export function contextHost(
  { directory }: ContextProject,
  definitions: readonly unknown[],
  { models = [], tools = {}, ...options }: ContextHostOptions = {},
): Host {
  const builtin = builtinTools(tools);
  const implementations = new Map([[builtin.scheme, builtin]]);
  const registry = new Registry(implementations);
  for (const definition of definitions) registry.add(definition, { directory, trusted: false });
  return new Host({
    store: memoryStore(),
    clock: new ManualClock(1_000_000),
    ids: seededIds(1),
    registry,
    providers: new Map(models.map((model) => [model.id, model])),
    implementations,
    contextFiles: contextFilesIn({
      directory,
      definitionDirectories: () => registry.list().map(({ origin }) => origin.directory),
    }),
    ...options,
  });
}

/** Returns the texts of the messages of a request that have this role. */
export function textsOf(request: ModelCallOptions | undefined, role: ModelMessage['role']): readonly string[] {
  return (request?.prompt ?? [])
    .filter((message) => message.role === role)
    .flatMap(({ content }) =>
      typeof content === 'string' ? [content] : content.flatMap((part) => ('text' in part ? [part.text] : [])),
    );
}
