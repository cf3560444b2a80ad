/** The `builtin:` tools: simple tools for trying a definition or a policy without writing code. */

import { LoopError } from '../../base/errors.js';
import { isObject } from '../../base/own-property.js';
import type { ToolFunction, ToolImplementation } from '../../loops/tool-implementation.js';
import type { Json } from '../../protocol/json.js';
import { abortable } from './abortable.js';
import { assertNoProblem, parseConfig } from './config.js';

/** The maximum duration of `builtin:wait`: ten minutes. */
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
  const timeout = (): Promise<void> =>
    new Promise((resolve) => {
      timer = setTimeout(resolve, ms);
    });
  try {
    await abortable(signal, timeout);
  } finally {
    clearTimeout(timer);
  }
  return { waitedMs: ms };
};

const standardTools: readonly (readonly [string, ToolFunction])[] = [
  ['echo', (input) => input],
  ['fail', failTool],
  ['wait', waitTool],
];

/**
 * Creates the implementation of `builtin:NAME` tools: `echo` returns its input, `fail` throws TOOL_FAILED with
 * `input.message`, and `wait` waits for `input.ms` milliseconds. `extra` adds tools; only these accept a `config`.
 * Throws DEFINITION_INVALID if an extra tool has the name of an existing one.
 *
 * @example
 * builtinTools({ upper: (input) => String(input).toUpperCase() });
 */
export function builtinTools(extra: { readonly [name: string]: ToolFunction } = {}): ToolImplementation {
  const tools = new Map(standardTools);
  for (const [name, tool] of Object.entries(extra)) {
    if (tools.has(name))
      throw new LoopError('DEFINITION_INVALID', `builtin:${name} exists already; choose another name.`);
    tools.set(name, tool);
  }
  const unavailableReason: ToolImplementation['unavailableReason'] = (target, _origin, config) => {
    if (!tools.has(target)) return `builtin:${target} does not exist; available are ${[...tools.keys()].join(', ')}.`;
    return standardTools.some(([name]) => name === target) ? parseConfig('builtin', config, {}).problem : undefined;
  };
  return {
    scheme: 'builtin',
    approvalDescriber: () => undefined,
    targetResolver: () => undefined,
    unavailableReason,
    open: async (target, origin, config) => {
      assertNoProblem(unavailableReason(target, origin, config));
      const tool = tools.get(target) as ToolFunction;
      return (input, call) => abortable(call.signal, () => tool(input, call));
    },
  };
}
