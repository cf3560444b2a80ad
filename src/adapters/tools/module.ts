/** `module:PATH#export`: a function of a JavaScript module beside the definition, run in this process. */
import { extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LoopError } from '../../journal/errors.js';
import type { Implementation, ToolFunction } from '../../loops/implementation.js';
import { abortable } from './abortable.js';
import { refuse } from './config.js';
import { placeFlaw, placeOf } from './place.js';
import { reasonOf } from './plain.js';

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

async function load(url: string, target: string, name: string): Promise<ToolFunction> {
  let exports: object;
  try {
    exports = (await import(url)) as object;
  } catch (error) {
    throw new LoopError('TOOL_FAILED', `module:${target} cannot be loaded. ${reasonOf(error)}`, undefined, error);
  }
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
  const loaded = new Map<string, Promise<ToolFunction>>();
  return {
    scheme: 'module',
    question: () => undefined,
    flaw,
    open: async (target, origin, config) => {
      refuse(flaw(target, origin, config));
      const { path, name } = split(target);
      const { file } = await placeOf('module', path, origin);
      const url = pathToFileURL(file).href;
      const key = `${url}#${name}`;
      const loading = loaded.get(key) ?? load(url, target, name);
      loaded.set(key, loading);
      // A module that is mended may be tried again.
      loading.catch(() => loaded.delete(key));
      const tool = await loading;
      return (input, call) => abortable(call.signal, () => tool(input, call));
    },
  };
}
