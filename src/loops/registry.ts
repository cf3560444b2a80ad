/**
 * The registry: definitions by id and version. A version is registered once: the same content again is no news, other
 * content under the same version is refused. Everything that can be known to be wrong without running is found here.
 */

import { LoopError } from '../base/errors.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import { compileSchema, type Validator } from '../json/schema.js';
import { compileTemplate } from '../json/template.js';
import type { Json } from '../protocol/json.js';
import type { CompositeSpec, CompositeStep, LoopDef } from '../protocol/loop.js';
import { compileSteps } from './composite.js';
import { type DefinedLoop, isDefinedLoop } from './defined-loop.js';
import { type DefinitionWarning, parseDefinition, warningsOf } from './definition/definition.js';
import type { DefinitionOrigin } from './origin.js';
import { compareVersions, isPrerelease } from './semver.js';
import { splitImplementation, type ToolImplementation } from './tool-implementation.js';

/** A definition that was checked and can be linked. */
export interface RegisteredLoop {
  readonly definition: LoopDef;
  readonly digest: string;
  readonly origin: DefinitionOrigin;
  readonly input: Validator;
  readonly output: Validator;
  /** The loop itself, when it was written in code. */
  readonly definedLoop: DefinedLoop | undefined;
  /** What is odd about the document, if it was one. */
  readonly warnings: readonly DefinitionWarning[];
}

/** A step that calls a loop which is not there. */
export interface MissingReference {
  readonly loop: string;
  readonly stepIndex: number;
  readonly missing: string;
}

/** A loop that another calls. */
type Callee = Pick<CompositeStep, 'loopId' | 'loopVersion'>;

const UNKNOWN_ORIGIN: DefinitionOrigin = { directory: undefined, trusted: false };

export class Registry {
  /** Versions of each id, the one that is meant without a version first: the newest, prereleases last. */
  private readonly versionsById = new Map<string, RegisteredLoop[]>();
  /** What was made in code and is registered as it is: who runs a loop by handing it over does so again and again. */
  private readonly registeredByLoop = new WeakMap<object, RegisteredLoop>();
  private readonly implementations: ReadonlyMap<string, ToolImplementation>;
  /** Counts changes: what was linked before the last one may be out of date. */
  generation = 0;

  constructor(implementations: ReadonlyMap<string, ToolImplementation> = new Map()) {
    this.implementations = implementations;
  }

  /** Takes a definition, as a document or made with defineLoop; a LoopError says what is wrong and where. */
  add(definition: unknown, origin: DefinitionOrigin = UNKNOWN_ORIGIN): RegisteredLoop {
    const before = this.registeredByLoop.get(definition as object);
    if (before !== undefined && this.find(before.definition.id, before.definition.version) === before) return before;
    if (isDefinedLoop(definition)) for (const part of definition.innerLoops ?? []) this.add(part, origin);
    const registered = isDefinedLoop(definition)
      ? registerCode(definition, origin)
      : this.registerDocument(definition, origin);
    const { id, version } = registered.definition;
    const versions = this.versionsById.get(id) ?? [];
    const known = versions.find((other) => other.definition.version === version);
    if (known !== undefined) return assertSameContent(known, registered);
    this.versionsById.set(id, [...versions, registered].sort(compareNewestFirst));
    this.generation += 1;
    if (registered.definedLoop !== undefined) this.registeredByLoop.set(registered.definedLoop, registered);
    return registered;
  }

  /** The loop of this id: the version asked for, else the newest that is not a prerelease, else the newest. */
  find(id: string, version?: string): RegisteredLoop | undefined {
    const versions = this.versionsById.get(id);
    if (version !== undefined) return versions?.find(({ definition }) => definition.version === version);
    return versions?.[0];
  }

  /** Forgets a loop; runs that were begun with it are pinned to what they were begun with. */
  remove(id: string, version?: string): boolean {
    const versions = this.versionsById.get(id) ?? [];
    const left = version === undefined ? [] : versions.filter(({ definition }) => definition.version !== version);
    if (left.length === versions.length) return false;
    if (left.length === 0) this.versionsById.delete(id);
    else this.versionsById.set(id, left);
    this.generation += 1;
    return true;
  }

  /** All that is registered, by id, newest version first and prereleases last. */
  list(): readonly RegisteredLoop[] {
    return [...this.versionsById.keys()].sort().flatMap((id) => this.versionsById.get(id) ?? []);
  }

  /** Steps that call what is not here. */
  missingReferences(): readonly MissingReference[] {
    return this.list().flatMap(({ definition: { id, version, composite } }) =>
      calleesOf(composite).flatMap((step, stepIndex) =>
        this.find(step.loopId, step.loopVersion) === undefined
          ? [{ loop: `${id}@${version}`, stepIndex, missing: versionedName(step) }]
          : [],
      ),
    );
  }

  private registerDocument(document: unknown, origin: DefinitionOrigin): RegisteredLoop {
    const where = origin.file ?? 'the definition';
    const definition = parseDefinition(document, where);
    const { id, prompt, composite, tool } = definition;
    const input = compileSchema(definition.inputSchema, `${where}: /inputSchema`);
    const output = compileSchema(definition.outputSchema, `${where}: /outputSchema`);
    if (prompt !== undefined) compileTemplate(prompt.template, id);
    if (composite?.steps !== undefined) compileSteps(id, composite);
    if (tool !== undefined) this.assertRunnable(definition, origin, where);
    const text = canonicalJson(definition as unknown as Json);
    const warnings = warningsOf(definition);
    return { definition, digest: digestOfText(text), origin, input, output, definedLoop: undefined, warnings };
  }

  private assertRunnable({ id, tool }: LoopDef, origin: DefinitionOrigin, where: string): void {
    if (tool === undefined) return;
    const { scheme, target } = splitImplementation(tool.implementation);
    const implementation = this.implementations.get(scheme);
    const known = [...this.implementations.keys()].map((name) => `${name}:`).join(', ');
    const flaw =
      implementation === undefined
        ? `"${scheme}:" is no way to run a tool here; there is ${known}`
        : implementation.unavailableReason(target, origin, tool.config ?? {});
    if (flaw === undefined) return;
    const message = `${where}: the tool of "${id}", ${tool.implementation}, cannot run: ${flaw}.`;
    throw new LoopError('DEFINITION_INVALID', message, { path: '/tool/implementation', reason: flaw });
  }
}

/** What a composite calls: its steps, or the tools of its agent. */
export function calleesOf(composite: CompositeSpec | undefined): readonly Callee[] {
  if (composite?.agent === undefined) return composite?.steps ?? [];
  const { tools, handoffs = [] } = composite.agent;
  return [...tools, ...handoffs].map((loopId) => ({ loopId }));
}

function versionedName({ loopId, loopVersion }: Callee): string {
  return loopVersion === undefined ? loopId : `${loopId}@${loopVersion}`;
}

function registerCode(code: DefinedLoop, origin: DefinitionOrigin): RegisteredLoop {
  const { definition, validators, source } = code;
  const text = canonicalJson({ definition: definition as unknown as Json, source });
  return { definition, digest: digestOfText(text), origin, ...validators, definedLoop: code, warnings: [] };
}

function assertSameContent(known: RegisteredLoop, again: RegisteredLoop): RegisteredLoop {
  if (known.digest === again.digest) return known;
  const { id, version } = known.definition;
  const places = [known, again].map(({ origin }) => origin.file ?? 'code').join(' and ');
  const message = `"${id}" ${version} is registered with other content (${places}): raise the version of the changed one.`;
  throw new LoopError('DEFINITION_INVALID', message, { path: '/version', reason: 'registered with other content' });
}

function compareNewestFirst({ definition: a }: RegisteredLoop, { definition: b }: RegisteredLoop): number {
  const unstable = Number(isPrerelease(a.version)) - Number(isPrerelease(b.version));
  return unstable || compareVersions(b.version, a.version);
}
