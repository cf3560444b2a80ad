/** The tools that come with Rondo: to try a definition or a policy without writing any code. */

import { LoopError } from '../../base/errors.js';
import { isObject } from '../../base/own-property.js';
import type { ToolFunction, ToolImplementation } from '../../loops/tool-implementation.js';
import type { Json } from '../../protocol/json.js';
import { abortable } from './abortable.js';
import { assertNoProblem, parseConfig } from './config.js';

/** Ten minutes. */
const MAX_WAIT_MS = 600_000;

function failTool(input: Json): never {
  const { message, retryable } = isObject(input) ? input : {};
  const text = typeof message === 'string' && message !== '' ? message : 'It was asked to fail.';
  throw new LoopError('TOOL_FAILED', text, { retryable: retryable === true });
}

const waitTool: ToolFunction = async (input, { signal }) => {
  const { ms } = isObject(input) ? input : {};
  if (typeof ms !== 'number' || !(ms >= 0 && ms <= MAX_WAIT_MS)) {
    throw new LoopError('TOOL_FAILED', `builtin:wait needs input.ms, a number from 0 to ${MAX_WAIT_MS}.`);
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

const shippedTools: readonly (readonly [string, ToolFunction])[] = [
  ['echo', (input) => input],
  ['fail', failTool],
  ['wait', waitTool],
];

/** `builtin:NAME`: echo, fail, wait, and what a host adds; only what is added may take a config. */
export function builtinTools(extra: { readonly [name: string]: ToolFunction } = {}): ToolImplementation {
  const known = new Map(shippedTools);
  for (const [name, tool] of Object.entries(extra)) {
    if (known.has(name)) throw new LoopError('DEFINITION_INVALID', `builtin:${name} is there already; rename yours.`);
    known.set(name, tool);
  }
  const flaw: ToolImplementation['unavailableReason'] = (target, _origin, config) => {
    if (!known.has(target)) return `builtin:${target} is not known; known are ${[...known.keys()].join(', ')}.`;
    return shippedTools.some(([name]) => name === target) ? parseConfig('builtin', config, {}).problem : undefined;
  };
  return {
    scheme: 'builtin',
    approvalDescriber: () => undefined,
    targetResolver: () => undefined,
    unavailableReason: flaw,
    open: async (target, origin, config) => {
      assertNoProblem(flaw(target, origin, config));
      const tool = known.get(target) as ToolFunction;
      return (input, call) => abortable(call.signal, () => tool(input, call));
    },
  };
}
