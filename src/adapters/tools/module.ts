/** `module:PATH#export`: a function of a JavaScript module beside the definition, run in this process. */
import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LoopError } from '../../base/errors.js';
import type { Implementation, ToolFunction } from '../../loops/implementation.js';
import { abortable } from './abortable.js';
import { importApproved, isChangedSource } from './approved-source.js';
import { refuse } from './config.js';
import { placeFlaw, placeOf } from './place.js';
import { reasonOf } from './plain.js';
import { assertProgram, assertUnchanged, programAt, settledProgram } from './program.js';

function split(target: string): { readonly path: string; readonly name: string } {
  const at = target.lastIndexOf('#');
  return at === -1 ? { path: target, name: '' } : { path: target.slice(0, at), name: target.slice(at + 1) };
}

function runsTypes(): boolean {
  return Boolean(Reflect.get(process.features, 'typescript'));
}

const flaw: Implementation['flaw'] = (target, origin) => {
  const { path, name } = split(target);
  if (name === '') return `module:${target} names no export; write module:PATH#export.`;
  const wrong = placeFlaw('module', path, origin);
  if (wrong !== undefined) return wrong;
  const kind = extname(path);
  if (kind === '.ts' && !runsTypes()) {
    return `module:${target} needs a Node that runs TypeScript (22.18 or newer); compile it to .mjs for this one.`;
  }
  return ['.mjs', '.js', '.cjs', '.ts'].includes(kind)
    ? undefined
    : `module:${target} must be a .mjs, .js, .cjs or .ts file.`;
};

/** Modules by file and digest: what was imported has these bytes, whatever the file holds by now. */
const imported = new Map<string, Promise<object>>();
let imports = 0;
const { cache: commonModules } = createRequire(import.meta.url);

type Import = (file: string, sha256: string, number: number) => Promise<object>;

/** The exports of a module with exactly these bytes; TOOL_NOT_ADMITTED if the file changes while it is loaded. */
function exportsOf(file: string, sha256: string, target: string, importing: Import): Promise<object> {
  const key = `${sha256} ${file}`;
  const known = imported.get(key);
  if (known !== undefined) return known;
  const loading = load(file, sha256, target, importing);
  imported.set(key, loading);
  // A module that is mended may be tried again.
  loading.catch(() => imported.delete(key));
  return loading;
}

/** Node caches a module by its URL, and a common module by its path too, whatever the file holds by now: each import has a URL of its own. */
async function load(file: string, sha256: string, target: string, importing: Import): Promise<object> {
  imports += 1;
  // guard: common-module-cache-cleared
  delete commonModules[file];
  try {
    return await importing(file, sha256, imports);
  } catch (error) {
    if (error instanceof LoopError) throw error;
    if (isChangedSource(error)) throw changedWhileLoaded(`module:${target}`);
    throw new LoopError('TOOL_FAILED', `module:${target} cannot be loaded. ${reasonOf(error)}`, undefined, error);
  }
}

/**
 * For calls without an approval, which need no loader hook. No function of the module is called unless the file had these bytes from
 * before it was loaded until after.
 */
const importUnchanged: Import = async (file, sha256, number) => {
  const named = `module:${file}`;
  const program = await settledProgram(file, named);
  assertProgram({ kind: 'program', path: file, sha256 }, program.target, named);
  const exports = (await import(`${pathToFileURL(file).href}?import=${number}`)) as object;
  await assertUnchanged(program, () => changedWhileLoaded(named));
  return exports;
};

function changedWhileLoaded(named: string): LoopError {
  return new LoopError(
    'TOOL_NOT_ADMITTED',
    `${named} was changed while it was loaded, so nothing was called. Ask again.`,
  );
}

function functionIn(exports: object, target: string, name: string): ToolFunction {
  if (!Object.hasOwn(exports, name)) {
    const names = Object.keys(exports).join(', ') || 'nothing';
    throw new LoopError('TOOL_FAILED', `module:${target}: there is no export '${name}'; it exports ${names}.`);
  }
  const found: unknown = Reflect.get(exports, name);
  if (typeof found !== 'function') {
    throw new LoopError('TOOL_FAILED', `module:${target}: the export '${name}' is not a function.`);
  }
  return found as ToolFunction;
}

/** `module:PATH#export`; the function gets the input and the call: its ids, its signal, its config. */
export function moduleTools(): Implementation {
  /** What calls without an approval run: the bytes that the file had at the first of them. */
  const loaded = new Map<string, Promise<object>>();
  const first = async (file: string, target: string): Promise<object> =>
    exportsOf(file, (await programAt(file, `module:${target}`)).sha256, target, importUnchanged);
  return {
    scheme: 'module',
    question: () => undefined,
    resolve: (target, origin) => async () =>
      programAt((await placeOf('module', split(target).path, origin)).file, `module:${target}`),
    flaw,
    open: async (target, origin, config, approved) => {
      refuse(flaw(target, origin, config));
      const { path, name } = split(target);
      const { file } = await placeOf('module', path, origin);
      let loading: Promise<object>;
      if (approved === undefined) {
        loading = loaded.get(file) ?? first(file, target);
        loaded.set(file, loading);
        loading.catch(() => loaded.delete(file));
      } else {
        const found = await programAt(file, `module:${target}`);
        assertProgram(approved, found, `module:${target}`);
        loading = exportsOf(file, found.sha256, target, importApproved);
      }
      const tool = functionIn(await loading, target, name);
      return (input, call) => abortable(call.signal, () => tool(input, call));
    },
  };
}
