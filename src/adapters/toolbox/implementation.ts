/**
 * `toolbox:NAME`: a tool of the toolbox in a JSON or TOML definition. Paths of its roots start at the definition and, unless
 * the operator trusts that directory, stay inside it; from elsewhere than a trusted directory nothing can be changed or run.
 * What the operator has set for commands and fetches holds, whatever a definition says.
 */
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { trustAdvice } from '../../base/permits.js';
import type { DefinitionOrigin } from '../../loops/origin.js';
import type { ToolFunction, ToolImplementation } from '../../loops/tool-implementation.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import type { Json } from '../../protocol/json.js';
import type { LoopsTool, LoopsToolOptions } from '../../protocol/tool.js';
import { type CommandOptions, type FetchOptions, findOptionsProblem, type ToolboxOptions } from './options.js';
import { containsPath } from './paths.js';
import { Roots } from './roots.js';
import { findPlatformProblem, type Toolbox, toolFactories } from './toolbox.js';

/** What the operator sets for all definitions. */
export interface ToolboxToolsOptions {
  readonly commands?: CommandOptions;
  readonly fetch?: FetchOptions;
}

type ToolConfig = { readonly [name: string]: Json };

const CHANGING_TOOLS: readonly string[] = ['write_file', 'edit_file', 'run_command'] satisfies (keyof Toolbox)[];
/** What does something asks unless the policy of its definition says otherwise. */
const APPROVAL_TOOLS: readonly string[] = [...CHANGING_TOOLS, 'fetch_url'];

/** What stands behind `toolbox:NAME`; a LoopError says what is wrong with the operator's options. */
export function toolboxTools(options: ToolboxToolsOptions = {}): ToolImplementation {
  const wrong = 'roots' in options ? 'Roots are set by definitions, not here.' : findOptionsProblem(options, 'options');
  if (wrong !== undefined) throw new LoopError('CONFIG_INVALID', wrong);
  return {
    scheme: 'toolbox',
    unavailableReason: findTargetProblem,
    approvalDescriber: (target, origin, config) => {
      if (!APPROVAL_TOOLS.includes(target)) return undefined;
      return async (input, context) =>
        (await createTool(target, origin, config, options)).requestApproval?.(input, context);
    },
    targetResolver: (target, origin, config) => {
      if (!APPROVAL_TOOLS.includes(target)) return undefined;
      return async (input) => (await createTool(target, origin, config, options)).approvalTarget?.(input);
    },
    open: async (target, origin, config, approved) =>
      toToolFunction(await createTool(target, origin, config, options), approved),
  };
}

/** Any tool of the toolbox: it checks what it is given itself. */
type AnyTool = LoopsTool<unknown, unknown>;

async function createTool(
  target: string,
  origin: DefinitionOrigin,
  config: ToolConfig,
  options: ToolboxToolsOptions,
): Promise<AnyTool> {
  const wrong = findTargetProblem(target, origin, config);
  if (wrong !== undefined) throw new LoopError('DEFINITION_INVALID', wrong);
  const roots = target === 'fetch_url' ? undefined : await openRoots(origin, config);
  const told = config as Partial<ToolboxOptions>;
  const merged = {
    roots: rootPathsOf(config),
    commands: { ...told.commands, ...options.commands },
    fetch: { ...told.fetch, ...options.fetch },
  };
  return toolFactories[target as keyof Toolbox](merged, () => roots as Roots) as unknown as AnyTool;
}

/** What the definition names, as far as text can tell. */
function findTargetProblem(target: string, origin: DefinitionOrigin, config: ToolConfig): string | undefined {
  if (!Object.hasOwn(toolFactories, target)) {
    return `toolbox:${target} is not known; known are ${Object.keys(toolFactories).join(', ')}.`;
  }
  return findPlatformProblem() ?? findOptionsProblem(config, 'config') ?? findOriginProblem(target, origin, config);
}

function findOriginProblem(
  target: string,
  { directory, trusted }: DefinitionOrigin,
  config: ToolConfig,
): string | undefined {
  const { fetch } = config as Partial<ToolboxOptions>;
  if (fetch?.allowPrivate && !trusted) {
    return `config.fetch.allowPrivate opens this machine's network, and where this definition comes from is not trusted. ${trustAdvice(directory)}`;
  }
  if (target === 'fetch_url') return undefined;
  if (directory === undefined) {
    return `toolbox:${target} needs a definition that comes from a file: the paths of its roots start at it.`;
  }
  if (trusted) return undefined;
  if (CHANGING_TOOLS.includes(target))
    return `toolbox:${target} changes things, and ${directory} is not trusted. ${trustAdvice(directory)}`;
  const base = resolve(directory);
  const leaving = rootPathsOf(config).find((root) => !containsPath(base, resolve(base, root)));
  if (leaving === undefined) return undefined;
  return `config.roots: ${leaving} leaves the directory of its definition (${directory}), which is not trusted. ${trustAdvice(directory)}`;
}

/** Defaults to the directory of the definition. */
function rootPathsOf(config: ToolConfig): readonly string[] {
  return (config as Partial<ToolboxOptions>).roots ?? ['.'];
}

/** The roots as they are on the disk now, links followed. */
async function openRoots({ directory = '', trusted }: DefinitionOrigin, config: ToolConfig): Promise<Roots> {
  const base = await realpath(directory);
  const roots = new Roots(rootPathsOf(config).map((root) => resolve(base, root)));
  const leaving = trusted ? undefined : roots.realPaths.find((root) => !containsPath(base, root));
  if (leaving === undefined) return roots;
  throw new LoopError(
    'DEFINITION_INVALID',
    `A root of the definition in ${directory} is a link that leaves it. ${trustAdvice(directory)}`,
  );
}

/** The caller has passed the approval gate. */
function toToolFunction(tool: AnyTool, approvedTarget: ApprovalTarget | undefined): ToolFunction {
  const run = tool.withApproval('always_allow');
  return async (input, call) => {
    const { callId, toolCallId = callId, signal: abortSignal } = call;
    const onToolOutputDelta = (delta: string): void => call.delta(delta);
    const options: LoopsToolOptions = { toolCallId, messages: [], abortSignal, onToolOutputDelta, approvedTarget };
    return run.execute(input, options);
  };
}
