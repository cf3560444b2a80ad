/**
 * The services that a host provides to bodies through their scope: model providers, tool implementations and turn
 * state.
 */

import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { BodyCall } from '../policy/grant-admission.js';
import { RestrictionFlag, RestrictionTable } from '../policy/restrictions.js';
import type { Loop, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { LiveDelta } from '../protocol/live.js';
import type { BackendRef } from '../protocol/loop.js';
import type { ModelMessage } from '../protocol/model.js';
import type { CallTimes } from '../views/call-results.js';
import type { ContextSources } from './context/context-source.js';
import type { DefinedLoop } from './defined-loop.js';
import type { ModelProvider } from './model.js';
import type { ToolImplementation } from './tool-implementation.js';
import type { Watchdog } from './watchdog.js';

/** The call of a body, for its admission. */
export type AdmittedBody = Pick<BodyCall, 'name' | 'input' | 'isCode'> & { readonly key: string };

/** State of a running turn that bodies can read. */
export interface TurnContext {
  /** Returns how many replies of a model are recorded in the turn, or in all turns of its session. */
  replyCount(ref: ModelRef, by: 'turn' | 'session'): number;
  /** Returns the messages of earlier turns of the session. */
  earlierMessages(): readonly ModelMessage[];
  /** Returns the references to context that the turn adds to those of the loop of a call. */
  addedContext(key: string): readonly string[];
  /** Returns the times and the trace of a step of the call `parent`; undefined if the step has not completed. */
  callTimes(callId: string, parent: string): CallTimes | undefined;
  /** Returns how many messages wait in the inbox of the session, by mode. */
  inboxCounts(): { readonly steer: number; readonly queue: number };
  /** Receives deltas, which are not journaled; undefined without a subscriber. */
  readonly onLiveDelta: ((delta: LiveDelta) => void) | undefined;
  /**
   * Throws TOOL_NOT_ADMITTED if the grant of the turn does not permit the body of a loop. Returns true if the body must
   * pass a gate, at which a person is asked or the call is counted.
   */
  admitBody(call: AdmittedBody): boolean;
  /** The restrictions of the agents of the turn. Created on first access. */
  readonly restrictions: RestrictionTable;
  /** The restrictions if they have been created; undefined otherwise. Reading this property does not create them. */
  readonly activeRestrictions: RestrictionTable | undefined;
  /** Enforces the timeouts of tool calls, and the default timeout of model calls. Created on first access. */
  readonly watchdog: Watchdog | undefined;
}

/** The context of a turn that the host does not run. */
const EMPTY_TURN_CONTEXT: TurnContext = {
  replyCount: () => 0,
  earlierMessages: () => [],
  addedContext: () => [],
  callTimes: () => undefined,
  inboxCounts: () => ({ steer: 0, queue: 0 }),
  onLiveDelta: undefined,
  admitBody: () => false,
  get restrictions() {
    return new RestrictionTable(new RestrictionFlag());
  },
  activeRestrictions: undefined,
  watchdog: undefined,
};

/** Dependencies of `LoopServices`. */
interface LoopServicesDeps {
  readonly providers: ReadonlyMap<string, ModelProvider>;
  /** Opens every model in place of its provider. */
  readonly modelOverride?: ModelProvider | undefined;
  readonly implementations: ReadonlyMap<string, ToolImplementation>;
  readonly turnContext: (turn: string) => TurnContext | undefined;
  readonly clock: Clock;
  readonly restrictionFlag: RestrictionFlag;
  /** Links a loop in code with the loops of the host's registry, and registers it if necessary. */
  readonly link: (loop: DefinedLoop) => Loop<Json, Json>;
  /** Returns true if a file exists, for the condition `file_exists`; undefined if the host has no access to files. */
  readonly fileExists: ((path: string) => Promise<boolean>) | undefined;
  /** Where the context of prompts and agents is read. */
  readonly contextSources: ContextSources;
}

/** The services of one host. Bodies obtain them with `servicesOf`. */
export class LoopServices {
  readonly implementations: ReadonlyMap<string, ToolImplementation>;
  readonly clock: Clock;
  readonly restrictionFlag: RestrictionFlag;
  readonly contextSources: ContextSources;
  private readonly deps: LoopServicesDeps;

  constructor(deps: LoopServicesDeps) {
    this.deps = deps;
    this.implementations = deps.implementations;
    this.clock = deps.clock;
    this.restrictionFlag = deps.restrictionFlag;
    this.contextSources = deps.contextSources;
  }

  /** Returns the same services with a fixed turn context, for a turn that is only replayed. */
  withTurnContext(context: TurnContext): LoopServices {
    return new LoopServices({ ...this.deps, turnContext: () => context });
  }

  /** Links a loop in code with the loops of the host's registry, and registers it if necessary. */
  link(loop: DefinedLoop): Loop<Json, Json> {
    return this.deps.link(loop);
  }

  /** Returns true if a file exists. Throws EXECUTION_FAILED if the host has no access to files. */
  async fileExists(path: string): Promise<boolean> {
    const { fileExists } = this.deps;
    if (fileExists !== undefined) return fileExists(path);
    const message = 'The condition file_exists needs access to files, which this host does not have.';
    throw new LoopError('EXECUTION_FAILED', message, { path });
  }

  /** True if another provider opens every model, also model objects. */
  get overridesModels(): boolean {
    return this.deps.modelOverride !== undefined;
  }

  /** Returns the provider that opens the models of this id. Throws BACKEND_FAILED if there is none. */
  provider(id: string): ModelProvider {
    const { providers, modelOverride } = this.deps;
    const provider = modelOverride ?? providers.get(id);
    if (provider !== undefined) return provider;
    const known = providers.size === 0 ? 'the host has none' : `there are ${[...providers.keys()].join(', ')}`;
    throw new LoopError('BACKEND_FAILED', `There is no backend "${id}"; ${known}.`, { backend: id });
  }

  /**
   * Returns a reference with its model or the default model of its provider. An unknown backend fails when it is
   * called.
   */
  toModelRef(ref: BackendRef): ModelRef {
    if (ref.model !== undefined) return ref as ModelRef;
    return { ...ref, model: this.deps.providers.get(ref.id)?.defaultModel ?? UNKNOWN_MODEL_NAME };
  }

  /** Returns the context of a turn; an empty one for a turn that the host does not run. */
  turnContext(turn: string): TurnContext {
    return this.deps.turnContext(turn) ?? EMPTY_TURN_CONTEXT;
  }
}

/** The model name in a reference to a backend that does not exist. */
const UNKNOWN_MODEL_NAME = 'unknown';

/** A reference to a backend with an explicit model. */
export type ModelRef = BackendRef & { readonly model: string };

/** Returns the services of the host that runs this scope. Throws EXECUTION_FAILED without a host. */
export function servicesOf(scope: Scope): LoopServices {
  if (scope.context instanceof LoopServices) return scope.context;
  const message = 'This loop uses models or tools: run it through a host, which provides them.';
  throw new LoopError('EXECUTION_FAILED', message);
}

/** Returns the id of the turn that a scope belongs to: the root of its path. */
export function turnIdOf({ key }: Scope): string {
  return rootKeyOf(key);
}

/** Returns the first segment of a path. */
export function rootKeyOf(key: string): string {
  const end = key.indexOf('/');
  return end === -1 ? key : key.slice(0, end);
}
