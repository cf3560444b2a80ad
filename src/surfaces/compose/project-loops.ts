/** The loops of a project: loads its definition files, registers what is valid and reports what is not, with line numbers. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { BadFile, FoundDefinition } from '../../adapters/files/index.js';
import { LoopError } from '../../base/errors.js';
import type { RegisteredLoop, Registry } from '../../loops/registry.js';
import { trustPredicateOf } from '../authority.js';
import type { Settings } from '../settings.js';
import { loadProviders, loadToolImplementations, toolSchemesOf } from './adapters.js';
import type { ProjectSettings } from './project-settings.js';

/** Something that is odd about a file; `mistake` if it looks like one. */
export type FileWarning = BadFile & { readonly mistake: boolean };

/** The definitions of a project, as far as they are any good. */
export interface Definitions {
  readonly registry: Registry;
  readonly badFiles: readonly BadFile[];
  /** What is odd about files that were loaded. */
  readonly warnings: readonly FileWarning[];
  /** What each file gave, in the order of the names. */
  readonly loops: readonly { readonly file: string; readonly registered: RegisteredLoop }[];
}

/** No definitions at all, for verbs that only look at what was recorded. */
export async function emptyDefinitions(): Promise<Definitions> {
  const { Registry } = await import('../../loops/registry.js');
  return { registry: new Registry(), badFiles: [], warnings: [], loops: [] };
}

/** The definitions of the project's directory, or of files and the directories they are in. */
export async function loadLoops(settings: Settings, files: readonly string[] = []): Promise<Definitions> {
  const [{ loadDefinitionFile, loadDefinitions }, { parseDefinition: parse }, { Registry }] = await Promise.all([
    import('../../adapters/files/load.js'),
    import('../../loops/definition/definition.js'),
    import('../../loops/registry.js'),
  ]);
  const options = { parse, trusted: trustPredicateOf(settings.authority) };
  const absent = !settings.hasExplicitLoops && !existsSync(settings.loopsDirectory);
  const directories = files.length > 0 ? [...new Set(files.map(dirname))] : absent ? [] : [settings.loopsDirectory];
  const loads = await Promise.all([
    ...files.map((file) => loadDefinitionFile(file, options)),
    ...directories.map((directory) => loadDefinitions(directory, options)),
  ]);
  const all = deduplicateLoops(loads.flatMap(({ definitions }) => definitions));
  const registry = new Registry(await loadToolImplementations(settings, toolSchemesOf(all)));
  const { loops, badFiles, warnings } = await registerAll(registry, all);
  return {
    registry,
    loops,
    badFiles: distinctBadFiles([...loads.flatMap((load) => load.badFiles), ...badFiles]),
    warnings,
  };
}

/** A file that was named and is also in its directory counts once; a module may hold several loops. */
function deduplicateLoops(found: readonly FoundDefinition[]): readonly FoundDefinition[] {
  const known = new Map(found.map((item) => [`${item.file}\n${'name' in item ? item.name : ''}`, item]));
  return [...known.values()];
}

function distinctBadFiles(bad: readonly BadFile[]): readonly BadFile[] {
  return [...new Map(bad.map((item) => [JSON.stringify(item), item])).values()];
}

async function registerAll(
  registry: Registry,
  all: readonly FoundDefinition[],
): Promise<Omit<Definitions, 'registry'>> {
  const found: Definitions['loops'][number][] = [];
  const bad: BadFile[] = [];
  const warnings: FileWarning[] = [];
  for (const item of all) {
    try {
      const definition = 'definition' in item ? item.definition : item.code;
      const registered = registry.add(definition, item.origin);
      found.push({ file: item.file, registered });
      if (registered.warnings.length > 0) warnings.push(...(await locateWarnings(item, registered)));
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      bad.push(...(await locateRejection(item, thrown)));
    }
  }
  return { loops: found, badFiles: bad, warnings };
}

/** What the registry refused, with the line of the file that it is about. */
async function locateRejection(item: FoundDefinition, error: LoopError): Promise<readonly BadFile[]> {
  const { file } = item;
  const { path = '', reason = error.message } = (error.data ?? {}) as { path?: string; reason?: string };
  // A schema's path begins with where its definition stands, for people.
  const pointer = /: (\/(?:input|output)Schema.*)$/s.exec(path)?.[1] ?? path;
  if (!('definition' in item)) return [{ file, reason: `${item.name}: ${error.message}` }];
  return locateInFile(file, [{ path: pointer, reason }]);
}

/** What is odd about a definition, with the lines of its file if it is a document. */
async function locateWarnings(item: FoundDefinition, { warnings }: RegisteredLoop): Promise<readonly FileWarning[]> {
  const flaws = warnings.map(({ path, reason }) => ({ path, reason }));
  const places = 'definition' in item ? await locateInFile(item.file, flaws) : [];
  return warnings.map((warning, index) => ({ file: item.file, ...places[index], ...warning }));
}

/** Parts of a document, with the lines that they are in. */
async function locateInFile(
  file: string,
  flaws: readonly { readonly path: string; readonly reason: string }[],
): Promise<readonly BadFile[]> {
  const { parseDefinitionText } = await import('../../adapters/files/parse-definition.js');
  const judged = parseDefinitionText(file, await readFile(file, 'utf8').catch(() => ''), () => {
    throw new LoopError('DEFINITION_INVALID', '', { flaws: flaws.map((flaw) => ({ ...flaw })) });
  });
  return 'badFiles' in judged ? judged.badFiles : flaws.map((flaw) => ({ file, ...flaw }));
}

/** Backends that definitions name and that neither Rondo nor the config has. */
export async function findUnknownBackends(
  settings: ProjectSettings,
  { loops }: Definitions,
): Promise<readonly BadFile[]> {
  const [{ backendsOf }, { nearestWord }, known] = await Promise.all([
    import('../../loops/definition/backends.js'),
    import('../../base/nearest-word.js'),
    loadProviders(settings),
  ]);
  const ids = [...known.keys()];
  const bad = loops.map(
    ({ file, registered: { definition, definedLoop } }): readonly BadFile[] | Promise<readonly BadFile[]> => {
      // An agent in code may have been given its model, which is no backend by id.
      const named = backendsOf(definition).filter(
        ({ path }) => definedLoop?.model === undefined || path.startsWith('/policy/'),
      );
      const flaws = named.flatMap(({ id, path }) => {
        if (known.has(id)) return [];
        const meant = nearestWord(id, ids);
        const hint = meant === undefined ? `there are ${ids.join(', ')}` : `did you mean "${meant}"?`;
        return [{ path, reason: `names the backend "${id}", which does not exist; ${hint}` }];
      });
      if (flaws.length === 0) return [];
      return definedLoop === undefined
        ? locateInFile(file, flaws)
        : flaws.map(({ path, reason }) => ({ file, path, reason }));
    },
  );
  return (await Promise.all(bad)).flat();
}
