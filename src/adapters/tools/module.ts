/** `module:PATH#export`: a function of a JavaScript module beside the definition, run in this process. */
import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LoopError } from '../../base/errors.js';
import type { ToolFunction, ToolImplementation } from '../../loops/tool-implementation.js';
import { abortable } from './abortable.js';
import { importApprovedModule, isSourceChangedError } from './approved-source.js';
import { assertNoProblem } from './config.js';
import { assertProgramApproved, assertProgramUnchanged, fingerprintProgram, programTargetOf } from './program.js';
import { describeError } from './sanitize-text.js';
import { findPathProblem, locateToolFile } from './tool-file.js';

function splitTarget(target: string): { readonly path: string; readonly name: string } {
  const at = target.lastIndexOf('#');
  return at === -1 ? { path: target, name: '' } : { path: target.slice(0, at), name: target.slice(at + 1) };
}

function canRunTypeScript(): boolean {
  return Boolean(Reflect.get(process.features, 'typescript'));
}

const findTargetProblem: ToolImplementation['unavailableReason'] = (target, origin) => {
  const { path, name } = splitTarget(target);
  if (name === '') return `module:${target} names no export; write module:PATH#export.`;
  const wrong = findPathProblem('module', path, origin);
  if (wrong !== undefined) return wrong;
  const kind = extname(path);
  if (kind === '.ts' && !canRunTypeScript()) {
    return `module:${target} needs a Node that runs TypeScript (22.18 or newer); compile it to .mjs for this one.`;
  }
  return ['.mjs', '.js', '.cjs', '.ts'].includes(kind)
    ? undefined
    : `module:${target} must be a .mjs, .js, .cjs or .ts file.`;
};

/** Modules by file and digest: what was imported has these bytes, whatever the file holds by now. */
const importedModules = new Map<string, Promise<object>>();
let importCount = 0;
const { cache: commonJsCache } = createRequire(import.meta.url);

type ImportModule = (file: string, sha256: string, number: number) => Promise<object>;

/** The exports of a module with exactly these bytes; TOOL_NOT_ADMITTED if the file changes while it is loaded. */
function loadExports(file: string, sha256: string, target: string, importing: ImportModule): Promise<object> {
  const key = `${sha256} ${file}`;
  const known = importedModules.get(key);
  if (known !== undefined) return known;
  const loading = importModule(file, sha256, target, importing);
  importedModules.set(key, loading);
  // A module that is mended may be tried again.
  loading.catch(() => importedModules.delete(key));
  return loading;
}

/** Node caches a module by its URL, and a common module by its path too, whatever the file holds by now: each import has a URL of its own. */
async function importModule(file: string, sha256: string, target: string, importing: ImportModule): Promise<object> {
  importCount += 1;
  // guard: common-module-cache-cleared
  delete commonJsCache[file];
  try {
    return await importing(file, sha256, importCount);
  } catch (error) {
    if (error instanceof LoopError) throw error;
    if (isSourceChangedError(error)) throw changedWhileLoadingError(`module:${target}`);
    throw new LoopError('TOOL_FAILED', `module:${target} cannot be loaded. ${describeError(error)}`, undefined, error);
  }
}

/**
 * For calls without an approval, which need no loader hook. No function of the module is called unless the file had these bytes from
 * before it was loaded until after.
 */
const importUnchanged: ImportModule = async (file, sha256, number) => {
  const named = `module:${file}`;
  const program = await fingerprintProgram(file, named);
  assertProgramApproved({ kind: 'program', path: file, sha256 }, program.target, named);
  const exports = (await import(`${pathToFileURL(file).href}?import=${number}`)) as object;
  await assertProgramUnchanged(program, () => changedWhileLoadingError(named));
  return exports;
};

function changedWhileLoadingError(named: string): LoopError {
  return new LoopError(
    'TOOL_NOT_ADMITTED',
    `${named} was changed while it was loaded, so nothing was called. Ask again.`,
  );
}

function exportedFunction(exports: object, target: string, name: string): ToolFunction {
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
export function moduleTools(): ToolImplementation {
  /** What calls without an approval run: the bytes that the file had at the first of them. */
  const loaded = new Map<string, Promise<object>>();
  const first = async (file: string, target: string): Promise<object> =>
    loadExports(file, (await programTargetOf(file, `module:${target}`)).sha256, target, importUnchanged);
  return {
    scheme: 'module',
    approvalDescriber: () => undefined,
    targetResolver: (target, origin) => async () =>
      programTargetOf((await locateToolFile('module', splitTarget(target).path, origin)).file, `module:${target}`),
    unavailableReason: findTargetProblem,
    open: async (target, origin, config, approved) => {
      assertNoProblem(findTargetProblem(target, origin, config));
      const { path, name } = splitTarget(target);
      const { file } = await locateToolFile('module', path, origin);
      let loading: Promise<object>;
      if (approved === undefined) {
        loading = loaded.get(file) ?? first(file, target);
        loaded.set(file, loading);
        loading.catch(() => loaded.delete(file));
      } else {
        const found = await programTargetOf(file, `module:${target}`);
        assertProgramApproved(approved, found, `module:${target}`);
        loading = loadExports(file, found.sha256, target, importApprovedModule);
      }
      const tool = exportedFunction(await loading, target, name);
      return (input, call) => abortable(call.signal, () => tool(input, call));
    },
  };
}
