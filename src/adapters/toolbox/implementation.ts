/**
 * `toolbox:NAME`: a tool of the toolbox in a JSON or TOML definition. Paths of its roots start at the definition and, unless
 * the operator trusts that directory, stay inside it; from elsewhere than a trusted directory nothing can be changed or run.
 * What the operator has set for commands and fetches holds, whatever a definition says.
 */
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { trustAdvice } from '../../base/permits.js';
import type { Implementation, ToolFunction } from '../../loops/implementation.js';
import type { Origin } from '../../loops/origin.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import type { Json } from '../../protocol/json.js';
import type { LoopsTool, LoopsToolOptions } from '../../protocol/tool.js';
import { type CommandOptions, type FetchOptions, optionsFlaw, type ToolboxOptions } from './options.js';
import { contains } from './paths.js';
import { Roots } from './roots.js';
import { makers, platformFlaw, type Toolbox } from './toolbox.js';

/** What the operator sets for all definitions. */
export interface ToolboxToolsOptions {
  readonly commands?: CommandOptions;
  readonly fetch?: FetchOptions;
}

type Config = { readonly [name: string]: Json };

const CHANGING: readonly string[] = ['write_file', 'edit_file', 'run_command'] satisfies (keyof Toolbox)[];
/** What does something asks unless the policy of its definition says otherwise. */
const ASKING: readonly string[] = [...CHANGING, 'fetch_url'];

/** What stands behind `toolbox:NAME`; a LoopError says what is wrong with the operator's options. */
export function toolboxTools(options: ToolboxToolsOptions = {}): Implementation {
  const wrong = 'roots' in options ? 'Roots are set by definitions, not here.' : optionsFlaw(options, 'options');
  if (wrong !== undefined) throw new LoopError('CONFIG_INVALID', wrong);
  return {
    scheme: 'toolbox',
    flaw,
    question: (target, origin, config) => {
      if (!ASKING.includes(target)) return undefined;
      return async (input, context) =>
        (await toolOf(target, origin, config, options)).requestApproval?.(input, context);
    },
    resolve: (target, origin, config) => {
      if (!ASKING.includes(target)) return undefined;
      return async (input) => (await toolOf(target, origin, config, options)).approvalTarget?.(input);
    },
    open: async (target, origin, config, approved) =>
      functionOf(await toolOf(target, origin, config, options), approved),
  };
}

/** Any tool of the toolbox: it checks what it is given itself. */
type Tool = LoopsTool<unknown, unknown>;

async function toolOf(target: string, origin: Origin, config: Config, options: ToolboxToolsOptions): Promise<Tool> {
  const wrong = flaw(target, origin, config);
  if (wrong !== undefined) throw new LoopError('DEFINITION_INVALID', wrong);
  const roots = target === 'fetch_url' ? undefined : await rootsOf(origin, config);
  const told = config as Partial<ToolboxOptions>;
  const merged = {
    roots: rootsIn(config),
    commands: { ...told.commands, ...options.commands },
    fetch: { ...told.fetch, ...options.fetch },
  };
  return makers[target as keyof Toolbox](merged, () => roots as Roots) as unknown as Tool;
}

/** What the definition names, as far as text can tell. */
function flaw(target: string, origin: Origin, config: Config): string | undefined {
  if (!Object.hasOwn(makers, target)) {
    return `toolbox:${target} is not known; known are ${Object.keys(makers).join(', ')}.`;
  }
  return platformFlaw() ?? optionsFlaw(config, 'config') ?? placeFlaw(target, origin, config);
}

function placeFlaw(target: string, { directory, trusted }: Origin, config: Config): string | undefined {
  const { fetch } = config as Partial<ToolboxOptions>;
  if (fetch?.allowPrivate && !trusted) {
    return `config.fetch.allowPrivate opens this machine's network, and where this definition comes from is not trusted. ${trustAdvice(directory)}`;
  }
  if (target === 'fetch_url') return undefined;
  if (directory === undefined) {
    return `toolbox:${target} needs a definition that comes from a file: the paths of its roots start at it.`;
  }
  if (trusted) return undefined;
  if (CHANGING.includes(target))
    return `toolbox:${target} changes things, and ${directory} is not trusted. ${trustAdvice(directory)}`;
  const base = resolve(directory);
  const leaving = rootsIn(config).find((root) => !contains(base, resolve(base, root)));
  if (leaving === undefined) return undefined;
  return `config.roots: ${leaving} leaves the directory of its definition (${directory}), which is not trusted. ${trustAdvice(directory)}`;
}

/** The definition's own directory unless told. */
function rootsIn(config: Config): readonly string[] {
  return (config as Partial<ToolboxOptions>).roots ?? ['.'];
}

/** The roots as they are on the disk now, links followed. */
async function rootsOf({ directory = '', trusted }: Origin, config: Config): Promise<Roots> {
  const base = await realpath(directory);
  const roots = new Roots(rootsIn(config).map((root) => resolve(base, root)));
  const leaving = trusted ? undefined : roots.all.find((root) => !contains(base, root));
  if (leaving === undefined) return roots;
  throw new LoopError(
    'DEFINITION_INVALID',
    `A root of the definition in ${directory} is a link that leaves it. ${trustAdvice(directory)}`,
  );
}

/** Whoever calls it has passed the gate: the question was asked before. */
function functionOf(tool: Tool, approvedTarget: ApprovalTarget | undefined): ToolFunction {
  const run = tool.withApproval('always_allow');
  return async (input, call) => {
    const { callId, toolCallId = callId, signal: abortSignal } = call;
    const onToolOutputDelta = (delta: string): void => call.delta(delta);
    const options: LoopsToolOptions = { toolCallId, messages: [], abortSignal, onToolOutputDelta, approvedTarget };
    return run.execute(input, options);
  };
}
