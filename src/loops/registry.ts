/**
 * The registry: definitions by id and version. A version is registered once: the same content again is no news, other
 * content under the same version is refused. Everything that can be known to be wrong without running is found here.
 */

import { LoopError } from '../base/errors.js';
import { digest } from '../journal/record.js';
import { canonical } from '../json/canonical.js';
import { compileSchema, type Validator } from '../json/schema.js';
import { compileTemplate } from '../json/template.js';
import type { Json } from '../protocol/json.js';
import type { CompositeSpec, CompositeStep, LoopDef } from '../protocol/loop.js';
import { compileSteps } from './composite.js';
import { type DefinedLoop, isDefinedLoop } from './defined.js';
import { parseDefinition, type Warning, warningsOf } from './definition/definition.js';
import { type Implementation, splitImplementation } from './implementation.js';
import type { Origin } from './origin.js';
import { compareVersions, isPrerelease } from './semver.js';

/** A definition that was checked and can be linked. */
export interface Registered {
  readonly definition: LoopDef;
  readonly digest: string;
  readonly origin: Origin;
  readonly input: Validator;
  readonly output: Validator;
  /** The loop itself, when it was written in code. */
  readonly code: DefinedLoop | undefined;
  /** What is odd about the document, if it was one. */
  readonly warnings: readonly Warning[];
}

/** A step that calls a loop which is not there. */
export interface Dangling {
  readonly loop: string;
  readonly stepIndex: number;
  readonly missing: string;
}

/** A loop that another calls. */
type Callee = Pick<CompositeStep, 'loopId' | 'loopVersion'>;

const NOWHERE: Origin = { directory: undefined, trusted: false };

export class Registry {
  /** Versions of each id, the one that is meant without a version first: the newest, prereleases last. */
  private readonly loops = new Map<string, Registered[]>();
  /** What was made in code and is registered as it is: who runs a loop by handing it over does so again and again. */
  private readonly code = new WeakMap<object, Registered>();
  private readonly implementations: ReadonlyMap<string, Implementation>;
  /** Counts changes: what was linked before the last one may be out of date. */
  generation = 0;

  constructor(implementations: ReadonlyMap<string, Implementation> = new Map()) {
    this.implementations = implementations;
  }

  /** Takes a definition, as a document or made with defineLoop; a LoopError says what is wrong and where. */
  add(definition: unknown, origin: Origin = NOWHERE): Registered {
    const before = this.code.get(definition as object);
    if (before !== undefined && this.find(before.definition.id, before.definition.version) === before) return before;
    if (isDefinedLoop(definition)) for (const part of definition.parts ?? []) this.add(part, origin);
    const registered = isDefinedLoop(definition)
      ? registeredCode(definition, origin)
      : this.registeredDocument(definition, origin);
    const { id, version } = registered.definition;
    const versions = this.loops.get(id) ?? [];
    const known = versions.find((other) => other.definition.version === version);
    if (known !== undefined) return settled(known, registered);
    this.loops.set(id, [...versions, registered].sort(newestFirst));
    this.generation += 1;
    if (registered.code !== undefined) this.code.set(registered.code, registered);
    return registered;
  }

  /** The loop of this id: the version asked for, else the newest that is not a prerelease, else the newest. */
  find(id: string, version?: string): Registered | undefined {
    const versions = this.loops.get(id);
    if (version !== undefined) return versions?.find(({ definition }) => definition.version === version);
    return versions?.[0];
  }

  /** Forgets a loop; runs that were begun with it are pinned to what they were begun with. */
  remove(id: string, version?: string): boolean {
    const versions = this.loops.get(id) ?? [];
    const left = version === undefined ? [] : versions.filter(({ definition }) => definition.version !== version);
    if (left.length === versions.length) return false;
    if (left.length === 0) this.loops.delete(id);
    else this.loops.set(id, left);
    this.generation += 1;
    return true;
  }

  /** All that is registered, by id, newest version first and prereleases last. */
  list(): readonly Registered[] {
    return [...this.loops.keys()].sort().flatMap((id) => this.loops.get(id) ?? []);
  }

  /** Steps that call what is not here. */
  dangling(): readonly Dangling[] {
    return this.list().flatMap(({ definition: { id, version, composite } }) =>
      callsOf(composite).flatMap((step, stepIndex) =>
        this.find(step.loopId, step.loopVersion) === undefined
          ? [{ loop: `${id}@${version}`, stepIndex, missing: nameOf(step) }]
          : [],
      ),
    );
  }

  private registeredDocument(document: unknown, origin: Origin): Registered {
    const where = origin.file ?? 'the definition';
    const definition = parseDefinition(document, where);
    const { id, prompt, composite, tool } = definition;
    const input = compileSchema(definition.inputSchema, `${where}: /inputSchema`);
    const output = compileSchema(definition.outputSchema, `${where}: /outputSchema`);
    if (prompt !== undefined) compileTemplate(prompt.template, id);
    if (composite?.steps !== undefined) compileSteps(id, composite);
    if (tool !== undefined) this.assertRunnable(definition, origin, where);
    const text = canonical(definition as unknown as Json);
    const warnings = warningsOf(definition);
    return { definition, digest: digest(text), origin, input, output, code: undefined, warnings };
  }

  private assertRunnable({ id, tool }: LoopDef, origin: Origin, where: string): void {
    if (tool === undefined) return;
    const { scheme, target } = splitImplementation(tool.implementation);
    const implementation = this.implementations.get(scheme);
    const known = [...this.implementations.keys()].map((name) => `${name}:`).join(', ');
    const flaw =
      implementation === undefined
        ? `"${scheme}:" is no way to run a tool here; there is ${known}`
        : implementation.flaw(target, origin, tool.config ?? {});
    if (flaw === undefined) return;
    const message = `${where}: the tool of "${id}", ${tool.implementation}, cannot run: ${flaw}.`;
    throw new LoopError('DEFINITION_INVALID', message, { path: '/tool/implementation', reason: flaw });
  }
}

/** What a composite calls: its steps, or the tools of its agent. */
export function callsOf(composite: CompositeSpec | undefined): readonly Callee[] {
  if (composite?.agent === undefined) return composite?.steps ?? [];
  const { tools, handoffs = [] } = composite.agent;
  return [...tools, ...handoffs].map((loopId) => ({ loopId }));
}

function nameOf({ loopId, loopVersion }: Callee): string {
  return loopVersion === undefined ? loopId : `${loopId}@${loopVersion}`;
}

function registeredCode(code: DefinedLoop, origin: Origin): Registered {
  const { definition, ends, source } = code;
  const text = canonical({ definition: definition as unknown as Json, source });
  return { definition, digest: digest(text), origin, ...ends, code, warnings: [] };
}

function settled(known: Registered, again: Registered): Registered {
  if (known.digest === again.digest) return known;
  const { id, version } = known.definition;
  const places = [known, again].map(({ origin }) => origin.file ?? 'code').join(' and ');
  const message = `"${id}" ${version} is registered with other content (${places}): raise the version of the changed one.`;
  throw new LoopError('DEFINITION_INVALID', message, { path: '/version', reason: 'registered with other content' });
}

function newestFirst({ definition: a }: Registered, { definition: b }: Registered): number {
  const unstable = Number(isPrerelease(a.version)) - Number(isPrerelease(b.version));
  return unstable || compareVersions(b.version, a.version);
}
