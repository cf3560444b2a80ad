/**
 * The registry: definitions by id and version. The content of a version in a document is immutable: registering the
 * same content again has no effect, and different content under the same version is refused. A loop in code replaces
 * an earlier one of its id and version, for new turns (hot reload), unless the two come from different files.
 * Registration validates a definition with its schemas, paths, models and tool. It does not require that called loops
 * exist.
 */

import { LoopError } from '../base/errors.js';
import { shortVersion } from '../base/short-version.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import { compileSchema, type Validator } from '../json/schema.js';
import { compileTemplate } from '../json/template.js';
import type { Json } from '../protocol/json.js';
import type { BackendRef, CompositeSpec, CompositeStep, LoopDef, ToolSpec } from '../protocol/loop.js';
import { type DefinedLoop, isDefinedLoop } from './defined-loop.js';
import { backendsOf, unknownBackendError } from './definition/backends.js';
import { type DefinitionWarning, parseDefinition, warningsOf } from './definition/definition.js';
import { DefinitionIssues } from './definition/shape.js';
import type { FailedDefinition } from './failed-definition.js';
import { builtInProviderIds } from './model-ref.js';
import type { ConfigOrigin, DefinitionOrigin } from './origin.js';
import { bindPlan, takesBindings } from './plan/bind-plan.js';
import { compileSteps } from './plan/composite-steps.js';
import { planCallees } from './plan/plan.js';
import { retriedOnceTool } from './plan/retried-once.js';
import { compareVersions, isPrerelease } from './semver.js';
import { splitImplementation, type ToolImplementation } from './tool-implementation.js';

/** A definition that was validated and can be linked. */
export interface RegisteredLoop {
  readonly definition: LoopDef;
  /** The digest of the definition. The source of a loop in code is no part of it. */
  readonly digest: string;
  readonly origin: DefinitionOrigin;
  readonly input: Validator;
  readonly output: Validator;
  /** The loop itself, if it was defined in code. */
  readonly definedLoop: DefinedLoop | undefined;
  /** Warnings about members of a document that have no effect. */
  readonly warnings: readonly DefinitionWarning[];
}

/** A step or a tool that refers to a loop that is not registered. */
export interface MissingReference {
  /** The loop that contains the reference, as `id@version`. */
  readonly loop: string;
  /** The zero-based index of the step, or of the tool or handoff of an agent; handoffs follow the tools. */
  readonly stepIndex: number;
  /** The id of the missing loop, with `@version` if the step pins one. */
  readonly missing: string;
}

/** The models that the definitions of a registry may use. */
export interface RegistryOptions {
  /**
   * The ids of the configured providers. A definition that names another one is refused.
   * @default not checked here; a host checks it before a turn starts
   */
  readonly providerIds?: readonly string[];
  /**
   * The model of JSON prompts that name none. It becomes part of their definition.
   * @default none; such a prompt is refused
   */
  readonly defaultModel?: BackendRef;
  /** The loops that the verbs of actions stand for. They become part of the plans that use them. */
  readonly verbs?: { readonly [verb: string]: string };
  /** The model of all prompts of plans, whatever model their workflow names. */
  readonly modelOverride?: BackendRef;
  /**
   * The `rondo.toml` that has the default model, the verbs and these providers.
   * @default they are the operator's
   */
  readonly config?: ConfigOrigin & { readonly providerIds: readonly string[] };
  /**
   * True for definitions that a journal recorded: earlier versions accepted prompts without a model.
   * @default false
   */
  readonly areRecorded?: boolean;
}

/** A reference from one loop to another. */
export type Callee = Pick<CompositeStep, 'loopId' | 'loopVersion'>;

const UNKNOWN_ORIGIN: DefinitionOrigin = { directory: undefined, trusted: false };

/**
 * The definitions and loops that a host can run.
 *
 * @example
 * ```ts
 * const registry = new Registry();
 * registry.add(greet); // a loop made with defineLoop
 * registry.find('greet')?.definition.version; // '1.0.0'
 * ```
 */
export class Registry {
  /** The versions of each id in descending order, prereleases last. The first is the default version. */
  private readonly versionsById = new Map<string, RegisteredLoop[]>();
  /** Loops in code that are registered already. A loop object may be passed to `add` for every turn. */
  private readonly registeredByLoop = new WeakMap<object, RegisteredLoop>();
  private readonly failedById = new Map<string, FailedDefinition>();
  private readonly implementations: ReadonlyMap<string, ToolImplementation>;
  private readonly options: RegistryOptions;
  /** Increases with every change. Loops linked in an earlier generation may be out of date. */
  generation = 0;

  /**
   * `implementations` are the ways to run tools, by scheme. Without them, every JSON definition of a tool is refused.
   */
  constructor(implementations: ReadonlyMap<string, ToolImplementation> = new Map(), options: RegistryOptions = {}) {
    this.implementations = implementations;
    this.options = options;
  }

  /**
   * Registers a definition: a JSON document, or a loop made with `defineLoop` or `defineAgent`. Returns the existing
   * registration, with its origin, if the same document or loop object is registered already. Another loop object of
   * the same id and version replaces the earlier one. Throws DEFINITION_INVALID if the definition is invalid, or if its
   * version is registered with different content by a document or by code of another file.
   */
  add(definition: unknown, origin: DefinitionOrigin = UNKNOWN_ORIGIN): RegisteredLoop {
    const earlier = this.registeredByLoop.get(definition as object);
    if (earlier !== undefined && this.find(earlier.definition.id, earlier.definition.version) === earlier)
      return earlier;
    if (isDefinedLoop(definition)) for (const inner of definition.innerLoops ?? []) this.add(inner, origin);
    const registered = earlier ?? this.register(definition, origin);
    this.assertBackendsConfigured(registered);
    const retriedOnce = this.retriedOnceTool(registered);
    // guard: retried-once-tool-refused
    if (retriedOnce !== undefined) throw retriedOnce;
    const { id, version } = registered.definition;
    const versions = this.versionsById.get(id) ?? [];
    const existing = versions.find((other) => other.definition.version === version);
    if (existing !== undefined && !replaces(registered, existing)) return existing;
    const others = versions.filter((other) => other !== existing);
    this.versionsById.set(id, [...others, registered].sort(compareNewestFirst));
    this.generation += 1;
    if (isDefinedLoop(definition)) this.registeredByLoop.set(definition, registered);
    return registered;
  }

  private register(definition: unknown, origin: DefinitionOrigin): RegisteredLoop {
    if (!isDefinedLoop(definition)) return this.registerDocument(definition, origin);
    // A plan in code is data, and the same as the document with its content.
    if (definition.definition.composite?.plan !== undefined)
      return this.registerDocument(definition.definition, origin);
    return registerCode(definition, this.withConfig(origin, definition.definition, definition.definition));
  }

  /** Returns the registration of a loop in code, even if another one has replaced it since. */
  registrationOf(loop: DefinedLoop): RegisteredLoop | undefined {
    return this.registeredByLoop.get(loop);
  }

  /** Returns a loop by id: the given version, or else the newest release, or else the newest prerelease. */
  find(id: string, version?: string): RegisteredLoop | undefined {
    const versions = this.versionsById.get(id);
    if (version !== undefined) return versions?.find(({ definition }) => definition.version === version);
    return versions?.[0];
  }

  /** Records that a definition could not be loaded. Requests for its id report its problems. */
  addFailure(failure: FailedDefinition): void {
    this.failedById.set(failure.id, failure);
    this.generation += 1;
  }

  /** Returns the problems of the definition with this id that could not be loaded; undefined if there is none. */
  failureOf(id: string): FailedDefinition | undefined {
    return this.failedById.get(id);
  }

  /** Returns the definitions that could not be loaded. */
  failures(): readonly FailedDefinition[] {
    return [...this.failedById.values()];
  }

  /** Removes one version or all versions of a loop. Returns false if there was none. Running turns are not affected. */
  remove(id: string, version?: string): boolean {
    const versions = this.versionsById.get(id) ?? [];
    const remaining = version === undefined ? [] : versions.filter(({ definition }) => definition.version !== version);
    if (remaining.length === versions.length) return false;
    if (remaining.length === 0) this.versionsById.delete(id);
    else this.versionsById.set(id, remaining);
    this.generation += 1;
    return true;
  }

  /** Returns all loops, sorted by id; the versions of an id are in descending order, prereleases last. */
  list(): readonly RegisteredLoop[] {
    return [...this.versionsById.keys()].sort().flatMap((id) => this.versionsById.get(id) ?? []);
  }

  /** Returns all references to loops that are not registered. */
  missingReferences(): readonly MissingReference[] {
    return this.list().flatMap(({ definition: { id, version, composite } }) =>
      calleesOf(composite).flatMap((step, stepIndex) =>
        this.find(step.loopId, step.loopVersion) === undefined
          ? [{ loop: `${id}@${version}`, stepIndex, missing: versionedName(step) }]
          : [],
      ),
    );
  }

  /**
   * Returns DEFINITION_INVALID if the loop is a plan that retries a registered tool with the safety `once`. Plans of a
   * journal are not checked: earlier versions accepted them.
   */
  retriedOnceTool(registered: RegisteredLoop): LoopError | undefined {
    if (this.options.areRecorded === true) return undefined;
    return retriedOnceTool(registered, (id, version) => this.find(id, version));
  }

  /** True if a loop runs only because the operator trusts its directory: code, and a tool that is refused without trust. */
  needsTrust({ definition: { tool }, origin, definedLoop }: RegisteredLoop): boolean {
    if (definedLoop !== undefined) return true;
    return tool !== undefined && this.unavailableReason(tool, { ...origin, trusted: false }) !== undefined;
  }

  private registerDocument(document: unknown, fileOrigin: DefinitionOrigin): RegisteredLoop {
    const where = fileOrigin.file ?? 'the definition';
    // All checks run, so that the error has everything that is wrong.
    const issues = new DefinitionIssues();
    const written = parseDefinition(document, where);
    const definition = this.bind(written, issues, where);
    const origin = this.withConfig(fileOrigin, written, definition);
    const { id, prompt, composite, tool } = definition;
    const input = issues.attempt(() => compileSchema(definition.inputSchema, `${where}: /inputSchema`));
    const output = issues.attempt(() => compileSchema(definition.outputSchema, `${where}: /outputSchema`));
    if (prompt !== undefined) issues.attempt(() => compileTemplate(prompt.template, id));
    if (composite?.steps !== undefined) issues.attempt(() => compileSteps(id, composite));
    // A plan with a verb that is not bound cannot be compiled.
    if (composite?.plan !== undefined && issues.count === 0) issues.attempt(() => planCallees(id, composite.plan));
    if (tool !== undefined) issues.attempt(() => this.assertRunnable(definition, origin, where));
    const error = issues.addedError();
    if (error !== undefined) throw error;
    const text = canonicalJson(definition as unknown as Json);
    const loop = { definition, digest: digestOfText(text), origin, definedLoop: undefined };
    return { ...loop, input: input as Validator, output: output as Validator, warnings: warningsOf(definition) };
  }

  /**
   * Returns a definition with what the project provides: the verbs and the models that its plan or prompt needs. Adds an
   * issue for each that is missing or unknown. `where` names the definition in messages.
   */
  bind(definition: LoopDef, issues: DefinitionIssues, where: string): LoopDef {
    const withModel = issues.attempt(() => this.withModel(definition, where)) ?? definition;
    const bound = this.withBindings(withModel, issues);
    const { providerIds } = this.options;
    const unknown = providerIds && unknownBackendError({ definition: bound }, providerIds, where);
    if (unknown !== undefined) issues.addError(unknown);
    return bound;
  }

  /** Returns a definition with the default model if it is a prompt without one. Throws DEFINITION_INVALID without a default. */
  private withModel(definition: LoopDef, where: string): LoopDef {
    const { defaultModel: backend, areRecorded = false, providerIds = builtInProviderIds } = this.options;
    if (definition.kind !== 'prompt' || definition.backend !== undefined) return definition;
    if (backend !== undefined) return { ...definition, backend };
    if (areRecorded) return definition;
    const reason =
      'is required: a prompt needs a model. Write "backend": { "id": PROVIDER, "model": NAME }, ' +
      'or set model = "PROVIDER:NAME" in rondo.toml for all prompts that name none. ' +
      `Providers: ${providerIds.join(', ')}; "mock" answers without a model, for tests`;
    throw new LoopError('DEFINITION_INVALID', `${where}: /backend: ${reason}.`, { path: '/backend', reason });
  }

  /** Returns a plan with the verbs and the model of the project; any other definition as it is. */
  private withBindings(definition: LoopDef, issues: DefinitionIssues): LoopDef {
    const { composite } = definition;
    if (composite?.plan === undefined || this.options.areRecorded === true) return definition;
    return { ...definition, composite: { plan: bindPlan(composite.plan, this.options, issues) } };
  }

  /** Returns the origin of a definition, with the config if that decides a part of it: its default model, a verb or a server. */
  private withConfig(origin: DefinitionOrigin, written: LoopDef, bound: LoopDef): DefinitionOrigin {
    const { config, modelOverride } = this.options;
    if (config === undefined) return origin;
    const { providerIds, ...file } = config;
    const plan = written.composite?.plan;
    const isBound =
      (plan !== undefined && takesBindings(plan, this.options)) ||
      (written.kind === 'prompt' && written.backend === undefined && modelOverride === undefined);
    // guard: config-that-decides-is-known
    return isBound || backendsOf(bound).some(({ ref }) => providerIds.includes(ref.id))
      ? { ...origin, config: file }
      : origin;
  }

  /** Throws DEFINITION_INVALID if a definition names a backend that is not configured. */
  private assertBackendsConfigured(registered: RegisteredLoop): void {
    const { providerIds } = this.options;
    if (providerIds === undefined) return;
    const { definition, origin } = registered;
    const error = unknownBackendError(registered, providerIds, origin.file ?? `"${definition.id}"`);
    if (error !== undefined) throw error;
  }

  /** Throws DEFINITION_INVALID if the implementation of a tool cannot run. */
  private assertRunnable({ id, tool }: LoopDef, origin: DefinitionOrigin, where: string): void {
    const reason = tool === undefined ? undefined : this.unavailableReason(tool, origin);
    if (tool === undefined || reason === undefined) return;
    const message = `${where}: the tool of "${id}", ${tool.implementation}, cannot run: ${reason}.`;
    throw new LoopError('DEFINITION_INVALID', message, { path: '/tool/implementation', reason });
  }

  /** Returns the reason why a tool cannot run in a definition of this origin; undefined if it can. */
  private unavailableReason({ implementation, config }: ToolSpec, origin: DefinitionOrigin): string | undefined {
    const { scheme, target } = splitImplementation(implementation);
    const found = this.implementations.get(scheme);
    if (found !== undefined) return found.unavailableReason(target, origin, config ?? {});
    const schemes = [...this.implementations.keys()].map((name) => `${name}:`).join(', ');
    return `"${scheme}:" is not a known scheme; known here: ${schemes}`;
  }
}

/** Returns the loops that a composite refers to: those of its steps or its plan, or the tools and handoffs of its agent. */
export function calleesOf(composite: CompositeSpec | undefined): readonly Callee[] {
  if (composite?.plan !== undefined)
    return planCallees('', composite.plan).map(({ loopId, version }) =>
      version === undefined ? { loopId } : { loopId, loopVersion: version },
    );
  if (composite?.agent === undefined) return composite?.steps ?? [];
  const { tools, handoffs = [] } = composite.agent;
  return [...tools, ...handoffs].map((loopId) => ({ loopId }));
}

function versionedName({ loopId, loopVersion }: Callee): string {
  return loopVersion === undefined ? loopId : `${loopId}@${loopVersion}`;
}

function registerCode(definedLoop: DefinedLoop, origin: DefinitionOrigin): RegisteredLoop {
  const { definition, validators } = definedLoop;
  // The member keeps the digests of code and of documents apart.
  const text = canonicalJson({ definition: definition as unknown as Json });
  return { definition, digest: digestOfText(text), origin, ...validators, definedLoop, warnings: [] };
}

/**
 * True if a registration replaces an existing one of the same id and version, which only a loop in code does. Throws
 * DEFINITION_INVALID if they differ and one is a document, or both come from different files.
 */
function replaces(added: RegisteredLoop, existing: RegisteredLoop): boolean {
  const areCode = added.definedLoop !== undefined && existing.definedLoop !== undefined;
  const files = [existing, added].map(({ origin }) => origin.file);
  const isSameFile = files[0] === files[1] || files.includes(undefined);
  if (areCode && isSameFile) return true;
  if (existing.digest === added.digest && existing.definedLoop?.source === added.definedLoop?.source) return false;
  const { id, version } = existing.definition;
  const where = files.map((file) => file ?? 'code').join(' and ');
  const message = `"${id}" ${shortVersion(version)} is registered with other content (${where}): raise the version of the changed one.`;
  throw new LoopError('DEFINITION_INVALID', message, { path: '/version', reason: 'registered with other content' });
}

function compareNewestFirst({ definition: a }: RegisteredLoop, { definition: b }: RegisteredLoop): number {
  const unstable = Number(isPrerelease(a.version)) - Number(isPrerelease(b.version));
  return unstable || compareVersions(b.version, a.version);
}
