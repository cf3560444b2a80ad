/**
 * Imports a module of a trusted directory. TypeScript runs natively where Node strips types, otherwise through tsx or
 * jiti if one of them is installed for the directory of the module.
 */
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { DocumentReadError, describeError } from './document-read-error.js';

/** Errors with which Node refuses a TypeScript module before it runs any of it, and which a loader may avoid. */
const LOADER_MAY_HELP: ReadonlySet<unknown> = new Set([
  'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
  'ERR_MODULE_NOT_FOUND',
  'ERR_UNKNOWN_FILE_EXTENSION',
]);

const canRunTypeScript = (): boolean => Boolean(Reflect.get(process.features, 'typescript'));

/** Imports modules with TypeScript support. */
type ImportTypeScript = (file: string) => Promise<object>;

/** Imports a module, whose code runs. Throws the error of the import, or DocumentReadError if no loader is installed. */
export async function importModule(file: string): Promise<object> {
  if (!file.endsWith('.ts')) return importNatively(file);
  if (!canRunTypeScript()) return (await requireLoader(file))(file);
  try {
    return await importNatively(file);
  } catch (thrown) {
    const loader = LOADER_MAY_HELP.has((thrown as { readonly code?: unknown } | null)?.code)
      ? await findLoader(file)
      : undefined;
    if (loader === undefined) throw thrown;
    return loader(file);
  }
}

async function importNatively(file: string): Promise<object> {
  return (await import(pathToFileURL(file).href)) as object;
}

async function requireLoader(file: string): Promise<ImportTypeScript> {
  const loader = await findLoader(file);
  if (loader !== undefined) return loader;
  throw new DocumentReadError(
    `Node ${process.versions.node} cannot run TypeScript by itself; run "npm install --save-dev tsx" in the project (or jiti), or use Node 22.18 or newer`,
  );
}

/** Loaders by the path of their package, because each is started once per process. */
const loaders = new Map<string, Promise<ImportTypeScript>>();

/** Returns the loader that is installed for the directory of the file; undefined if there is none. */
async function findLoader(file: string): Promise<ImportTypeScript | undefined> {
  const { resolve } = createRequire(file);
  for (const [name, start] of [
    ['tsx', startTsx],
    ['jiti', startJiti],
  ] as const) {
    const path = resolvedPath(resolve, name);
    if (path === undefined) continue;
    const loader = loaders.get(path) ?? start(path);
    loaders.set(path, loader);
    return loader.catch((thrown: unknown) => {
      throw new DocumentReadError(`its loader ${path} could not be started: ${describeError(thrown)}`);
    });
  }
  return undefined;
}

function resolvedPath(resolve: NodeJS.RequireResolve, name: string): string | undefined {
  try {
    // Packages may be linked, and a loader finds its own dependencies from its real path.
    return realpathSync(resolve(name));
  } catch {
    return undefined;
  }
}

/**
 * Registers the hooks of tsx for this process, which its main module does when it is imported. Modules are shared
 * with everything that Node has imported already.
 */
async function startTsx(path: string): Promise<ImportTypeScript> {
  await importNatively(path);
  return importNatively;
}

interface Jiti {
  createJiti(id: string, options: object): { import(file: string): Promise<object> };
}

async function startJiti(path: string): Promise<ImportTypeScript> {
  const { createJiti } = (await import(pathToFileURL(path).href)) as Jiti;
  return (file) => createJiti(pathToFileURL(file).href, { fsCache: false, interopDefault: false }).import(file);
}
