/**
 * `toolbox:NAME` tools: the toolbox in JSON and TOML definitions. The paths of roots are relative to the directory of
 * the definition. In an untrusted directory, roots must be inside it, and tools that change files or run commands are
 * not available. The options of the operator override those of a definition.
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

/** The options of the operator, which apply to all definitions. */
export interface ToolboxToolsOptions {
  readonly commands?: CommandOptions;
  readonly fetch?: FetchOptions;
}

type ToolConfig = { readonly [name: string]: Json };

/** The tools that change files or run commands. */
const CHANGING_TOOLS: readonly string[] = ['write_file', 'edit_file', 'run_command'] satisfies (keyof Toolbox)[];
/** The tools that ask for approval by default; the policy of a definition can change that. */
const APPROVAL_TOOLS: readonly string[] = [...CHANGING_TOOLS, 'fetch_url'];

/**
 * Creates the implementation of `toolbox:NAME` tools. Throws CONFIG_INVALID if the options are invalid.
 *
 * @example
 * toolboxTools({ commands: { sandbox: 'required', network: false } });
 */
export function toolboxTools(options: ToolboxToolsOptions = {}): ToolImplementation {
  const problem =
    'roots' in options ? 'Roots are set by definitions, not here.' : findOptionsProblem(options, 'options');
  if (problem !== undefined) throw new LoopError('CONFIG_INVALID', problem);
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

/** Any tool of the toolbox. It validates its input itself. */
type AnyTool = LoopsTool<unknown, unknown>;

async function createTool(
  target: string,
  origin: DefinitionOrigin,
  config: ToolConfig,
  options: ToolboxToolsOptions,
): Promise<AnyTool> {
  const problem = findTargetProblem(target, origin, config);
  if (problem !== undefined) throw new LoopError('DEFINITION_INVALID', problem);
  const roots = target === 'fetch_url' ? undefined : await openRoots(origin, config);
  const { commands, fetch } = config as Partial<ToolboxOptions>;
  const merged = {
    roots: rootPathsOf(config),
    commands: { ...commands, ...options.commands },
    fetch: { ...fetch, ...options.fetch },
  };
  return toolFactories[target as keyof Toolbox](merged, () => roots as Roots) as unknown as AnyTool;
}

/**
 * Returns the reason why a tool is not available on this platform or its definition is invalid; undefined if there is
 * none. Does not access the file system.
 */
function findTargetProblem(target: string, origin: DefinitionOrigin, config: ToolConfig): string | undefined {
  if (!Object.hasOwn(toolFactories, target)) {
    return `toolbox:${target} does not exist; available are ${Object.keys(toolFactories).join(', ')}.`;
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
    return `config.fetch.allowPrivate gives access to this machine's network, and the source of this definition is not trusted. ${trustAdvice(directory)}`;
  }
  if (target === 'fetch_url') return undefined;
  if (directory === undefined) {
    return `toolbox:${target} needs a definition that comes from a file: its roots are relative to it.`;
  }
  if (trusted) return undefined;
  if (CHANGING_TOOLS.includes(target))
    return `toolbox:${target} has side effects, and ${directory} is not trusted. ${trustAdvice(directory)}`;
  const base = resolve(directory);
  const outsideRoot = rootPathsOf(config).find((root) => !containsPath(base, resolve(base, root)));
  if (outsideRoot === undefined) return undefined;
  return `config.roots: ${outsideRoot} leaves the directory of its definition (${directory}), which is not trusted. ${trustAdvice(directory)}`;
}

/** Returns the roots of a definition, which default to its own directory. */
function rootPathsOf(config: ToolConfig): readonly string[] {
  return (config as Partial<ToolboxOptions>).roots ?? ['.'];
}

/**
 * Resolves the roots of a definition. Throws CONFIG_INVALID if a directory cannot be a root, and DEFINITION_INVALID if
 * a link leaves an untrusted directory.
 */
async function openRoots({ directory = '', trusted }: DefinitionOrigin, config: ToolConfig): Promise<Roots> {
  const base = await realpath(directory);
  const roots = new Roots(rootPathsOf(config).map((root) => resolve(base, root)));
  const isAllowed = trusted || roots.realPaths.every((root) => containsPath(base, root));
  if (isAllowed) return roots;
  throw new LoopError(
    'DEFINITION_INVALID',
    `A root of the definition in ${directory} is a link that leaves it. ${trustAdvice(directory)}`,
  );
}

/** Converts a tool to a function that runs without asking: the approval gate precedes the call. */
function toToolFunction(tool: AnyTool, approvedTarget: ApprovalTarget | undefined): ToolFunction {
  const allowedTool = tool.withApproval('always_allow');
  return async (input, call) => {
    const { callId, toolCallId = callId, idempotencyKey, signal: abortSignal } = call;
    const onToolOutputDelta = (delta: string): void => call.delta(delta);
    const options: LoopsToolOptions = {
      confinement: call.confinement,
      toolCallId,
      idempotencyKey,
      messages: [],
      abortSignal,
      onToolOutputDelta,
      approvedTarget,
    };
    return allowedTool.execute(input, options);
  };
}
