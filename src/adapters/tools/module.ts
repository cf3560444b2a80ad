/**
 * `module:PATH#export` tools: a function of a module in the directory of the definition, or below it, that runs in this
 * process.
 */
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
  const hash = target.lastIndexOf('#');
  return hash === -1 ? { path: target, name: '' } : { path: target.slice(0, hash), name: target.slice(hash + 1) };
}

function canRunTypeScript(): boolean {
  return Boolean(Reflect.get(process.features, 'typescript'));
}

const findTargetProblem: ToolImplementation['unavailableReason'] = (target, origin) => {
  const { path, name } = splitTarget(target);
  if (name === '') return `module:${target} names no export; write module:PATH#export.`;
  const problem = findPathProblem('module', path, origin);
  if (problem !== undefined) return problem;
  const extension = extname(path);
  if (extension === '.ts' && !canRunTypeScript()) {
    return `module:${target} needs a Node that runs TypeScript (22.18 or newer); compile it to .mjs for this one.`;
  }
  return ['.mjs', '.js', '.cjs', '.ts'].includes(extension)
    ? undefined
    : `module:${target} must be a .mjs, .js, .cjs or .ts file.`;
};

/** Imported modules by digest and file. The digest is that of the imported bytes; the file may have changed since. */
const importedModules = new Map<string, Promise<object>>();
let importCount = 0;
const { cache: commonJsCache } = createRequire(import.meta.url);

type ImportModule = (file: string, sha256: string, importId: number) => Promise<object>;

/**
 * Returns the exports of a module with exactly these bytes, from the cache if it has been imported before. Throws
 * TOOL_NOT_ADMITTED if the file has other bytes, and TOOL_FAILED if it cannot be loaded.
 */
function loadExports(file: string, sha256: string, target: string, importWith: ImportModule): Promise<object> {
  const key = `${sha256} ${file}`;
  const cached = importedModules.get(key);
  if (cached !== undefined) return cached;
  const exports = importModule(file, sha256, target, importWith);
  importedModules.set(key, exports);
  // A failed import is not cached, so that a repaired module can be loaded.
  exports.catch(() => importedModules.delete(key));
  return exports;
}

/**
 * Imports a module anew. Node caches modules by URL, and CommonJS modules by path too, so each import uses a new URL
 * and removes the file from the cache by path.
 */
async function importModule(file: string, sha256: string, target: string, importWith: ImportModule): Promise<object> {
  importCount += 1;
  // guard: common-module-cache-cleared
  delete commonJsCache[file];
  try {
    return await importWith(file, sha256, importCount);
  } catch (error) {
    if (error instanceof LoopError) throw error;
    if (isSourceChangedError(error)) throw changedWhileLoadingError(`module:${target}`);
    throw new LoopError('TOOL_FAILED', `module:${target} cannot be loaded. ${describeError(error)}`, undefined, error);
  }
}

/**
 * Imports a module for calls without an approval, without a loader hook. Throws TOOL_NOT_ADMITTED if the file changed
 * while it was loaded. In this case, its top level may have run, but none of its functions is called.
 */
const importUnchanged: ImportModule = async (file, sha256, importId) => {
  const displayName = `module:${file}`;
  const program = await fingerprintProgram(file, displayName);
  assertProgramApproved({ kind: 'program', path: file, sha256 }, program.target, displayName);
  const exports = (await import(`${pathToFileURL(file).href}?import=${importId}`)) as object;
  await assertProgramUnchanged(program, () => changedWhileLoadingError(displayName));
  return exports;
};

function changedWhileLoadingError(displayName: string): LoopError {
  return new LoopError(
    'TOOL_NOT_ADMITTED',
    `${displayName} was changed while it was loaded, so nothing was called. Ask again.`,
  );
}

function exportedFunction(exports: object, target: string, name: string): ToolFunction {
  if (!Object.hasOwn(exports, name)) {
    const names = Object.keys(exports).join(', ') || 'nothing';
    throw new LoopError('TOOL_FAILED', `module:${target}: there is no export '${name}'; it exports ${names}.`);
  }
  const exported: unknown = Reflect.get(exports, name);
  if (typeof exported !== 'function') {
    throw new LoopError('TOOL_FAILED', `module:${target}: the export '${name}' is not a function.`);
  }
  return exported as ToolFunction;
}

/**
 * Creates the implementation of `module:PATH#export` tools. The function receives the input and the context of the
 * call, such as its ids, its abort signal and the config of the tool.
 */
export function moduleTools(): ToolImplementation {
  /** Modules for calls without an approval. They run the bytes that the file had at the first such call. */
  const exportsByFile = new Map<string, Promise<object>>();
  const loadCurrent = async (file: string, target: string): Promise<object> =>
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
      let exports: Promise<object>;
      if (approved === undefined) {
        exports = exportsByFile.get(file) ?? loadCurrent(file, target);
        exportsByFile.set(file, exports);
        exports.catch(() => exportsByFile.delete(file));
      } else {
        const current = await programTargetOf(file, `module:${target}`);
        assertProgramApproved(approved, current, `module:${target}`);
        exports = loadExports(file, current.sha256, target, importApprovedModule);
      }
      const tool = exportedFunction(await exports, target, name);
      return (input, call) => abortable(call.signal, () => tool(input, call));
    },
  };
}
