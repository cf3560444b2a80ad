/** The tools that come with Rondo: to try a definition or a policy without writing any code. */

import { LoopError } from '../../base/errors.js';
import { isObject } from '../../base/own-property.js';
import type { Implementation, ToolFunction } from '../../loops/implementation.js';
import type { Json } from '../../protocol/json.js';
import { abortable } from './abortable.js';
import { readConfig, refuse } from './config.js';

/** Ten minutes. */
const LONGEST = 600_000;

function fail(input: Json): never {
  const { message, retryable } = isObject(input) ? input : {};
  const text = typeof message === 'string' && message !== '' ? message : 'It was asked to fail.';
  throw new LoopError('TOOL_FAILED', text, { retryable: retryable === true });
}

const wait: ToolFunction = async (input, { signal }) => {
  const { ms } = isObject(input) ? input : {};
  if (typeof ms !== 'number' || !(ms >= 0 && ms <= LONGEST)) {
    throw new LoopError('TOOL_FAILED', `builtin:wait needs input.ms, a number from 0 to ${LONGEST}.`);
  }
  let timer: NodeJS.Timeout | undefined;
  const passed = (): Promise<void> =>
    new Promise((resolve) => {
      timer = setTimeout(resolve, ms);
    });
  try {
    await abortable(signal, passed);
  } finally {
    clearTimeout(timer);
  }
  return { waitedMs: ms };
};

const own: readonly (readonly [string, ToolFunction])[] = [
  ['echo', (input) => input],
  ['fail', fail],
  ['wait', wait],
];

/** `builtin:NAME`: echo, fail, wait, and what a host adds; only what is added may take a config. */
export function builtinTools(extra: { readonly [name: string]: ToolFunction } = {}): Implementation {
  const known = new Map(own);
  for (const [name, tool] of Object.entries(extra)) {
    if (known.has(name)) throw new LoopError('DEFINITION_INVALID', `builtin:${name} is there already; rename yours.`);
    known.set(name, tool);
  }
  const flaw: Implementation['flaw'] = (target, _origin, config) => {
    if (!known.has(target)) return `builtin:${target} is not known; known are ${[...known.keys()].join(', ')}.`;
    return own.some(([name]) => name === target) ? readConfig('builtin', config, {}).flaw : undefined;
  };
  return {
    scheme: 'builtin',
    question: () => undefined,
    resolve: () => undefined,
    flaw,
    open: async (target, origin, config) => {
      refuse(flaw(target, origin, config));
      const tool = known.get(target) as ToolFunction;
      return (input, call) => abortable(call.signal, () => tool(input, call));
    },
  };
}
