/**
 * Pins: a turn is pinned to the definitions that it started with. They are stored as one blob (the pin), and a
 * resumed turn is linked from them, independent of the current registry. Code cannot be stored: for a loop in code the
 * pin has its definition, to tell what has changed, and the loop must be registered when the turn continues.
 */

import { LoopError } from '../base/errors.js';
import { shortVersion } from '../base/short-version.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import { failedDefinitionError } from '../loops/failed-definition.js';
import { type LinkedLoop, linkLoop } from '../loops/link.js';
import type { ConfigOrigin, DefinitionOrigin } from '../loops/origin.js';
import { type RegisteredLoop, Registry } from '../loops/registry.js';
import type { ToolImplementation } from '../loops/tool-implementation.js';
import { isUntrustedPart, mixedTrustError } from '../loops/trust-boundary.js';
import type { Json } from '../protocol/json.js';

/** One definition of a pin. */
export interface PinnedDefinition {
  readonly id: string;
  readonly version: string;
  /** The digest of the definition. */
  readonly digest: string;
  /** Absent for a loop in code in a pin of an earlier version. */
  readonly definition?: Json;
  /**
   * For a loop in code: the digest of the source text of its function. It is evidence only, because a compiler, a
   * bundler or another version of Node changes the text.
   */
  readonly source?: string;
  readonly directory?: string;
  readonly file?: string;
  /** The `rondo.toml` that decided a part of the definition. */
  readonly config?: Pick<ConfigOrigin, 'directory' | 'file'>;
}

/** The content of a pin. */
export interface Pin {
  /** The build of the host that started the turn, if it had one. */
  readonly build?: string;
  /** The definitions, that of the root first. */
  readonly definitions: readonly PinnedDefinition[];
}

/** A linked loop and its pin as JSON text. The loop's `definitionDigest` is the digest of this text. */
export interface PinnedLoop extends LinkedLoop {
  readonly pinText: string;
  /** The build of the host that pinned the loop. */
  readonly build: string | undefined;
}

const pinCache = new WeakMap<LinkedLoop, PinnedLoop>();

/** Returns a linked loop with its pin, which is computed once for each linked loop and build. */
export function pin(linked: LinkedLoop, build: string | undefined): PinnedLoop {
  const cached = pinCache.get(linked);
  if (cached !== undefined && cached.build === build) return cached;
  const pinned = createPin(linked, build);
  pinCache.set(linked, pinned);
  return pinned;
}

function createPin(linked: LinkedLoop, build: string | undefined): PinnedLoop {
  const definitions = linked.definitions.map(pinnedDefinitionOf);
  const pinText = JSON.stringify(build === undefined ? { definitions } : { build, definitions });
  // The name of a loop that can be called like a function is not enumerable.
  const loop = { ...linked.loop, name: linked.loop.name, definitionDigest: digestOfText(pinText) };
  return { ...linked, loop, pinText, build };
}

function pinnedDefinitionOf({
  definition,
  digest,
  origin: { directory, file, config },
  definedLoop,
}: RegisteredLoop): PinnedDefinition {
  const { id, version } = definition;
  const decided = config && { config: { directory: config.directory, file: config.file } };
  const pinned = { id, version, digest, definition: definition as unknown as Json, ...decided };
  if (definedLoop !== undefined) return { ...pinned, source: digestOfText(definedLoop.source) };
  return { ...pinned, ...(directory !== undefined && { directory }), ...(file !== undefined && { file }) };
}

/** Parses the text of a pin. Pins of earlier versions are the list of definitions alone. */
export function parsePin(pinText: string): Pin {
  const parsed = JSON.parse(pinText) as Pin | readonly PinnedDefinition[];
  return 'definitions' in parsed ? parsed : { definitions: parsed };
}

/** True if the pinned loop was defined in code. */
export function isPinnedCode({ definition, source }: PinnedDefinition): boolean {
  return definition === undefined || source !== undefined;
}

/** What is needed to link a pinned loop. */
interface UnpinDeps {
  readonly registry: Registry;
  readonly implementations: ReadonlyMap<string, ToolImplementation>;
  /** The build of this host. */
  readonly build: string | undefined;
  /** The loop with which the turn paused in this process. Its code is used, whatever is registered since. */
  readonly kept: LinkedLoop | undefined;
  /**
   * Returns true if the operator trusts recorded definitions of this directory that differ from the registered ones.
   * Undefined for the host of a program, whose journal has its own definitions.
   */
  readonly trusts: ((directory: string | undefined) => boolean) | undefined;
}

/**
 * Links the pinned definitions of a turn; the first one is the root. Throws LOOP_NOT_FOUND if a loop in code is not
 * registered, and DEFINITION_INVALID if a definition cannot be registered, for example because it is not trusted.
 */
export function unpin(pinText: string, deps: UnpinDeps): PinnedLoop {
  const { registry, implementations, build } = deps;
  const { definitions } = parsePin(pinText);
  const pinnedRegistry = new Registry(implementations, { areRecorded: true });
  for (const pinned of definitions) {
    const { id, version } = pinned;
    const current = registry.find(id, version);
    const code = isPinnedCode(pinned) ? keptCode(deps.kept, id, version) : undefined;
    const added = isPinnedCode(pinned) ? (code ?? current?.definedLoop) : pinned.definition;
    if (added === undefined) throw missingLoopError(registry, id, version);
    const origin = recordedOrigin(pinned, current, deps.trusts);
    try {
      pinnedRegistry.add(added, origin);
    } catch (thrown) {
      throw origin.trusted || !(thrown instanceof LoopError) ? thrown : recordedDefinitionError(thrown);
    }
  }
  const [first] = definitions;
  const root = first && pinnedRegistry.find(first.id, first.version);
  if (root === undefined) throw missingLoopError(registry, first?.id ?? '', first?.version ?? '');
  return pin(linkLoop(pinnedRegistry, root), build);
}

function keptCode(kept: LinkedLoop | undefined, id: string, version: string): RegisteredLoop['definedLoop'] {
  return kept?.definitions.find(({ definition }) => definition.id === id && definition.version === version)
    ?.definedLoop;
}

/**
 * Throws DEFINITION_INVALID if a turn may not continue, because parts of it, or the journal that has it, are no longer
 * trusted, or never were.
 */
export function assertTrustedParts(linked: LinkedLoop, untrustedJournal: string | undefined): void {
  const trustProblem = linked.trustProblem({ untrustedDirectory: untrustedJournal });
  // guard: mixed-trust-not-continued
  if (trustProblem === undefined) return;
  const hint = 'Unless its definitions are registered here unchanged, the directory of the journal must be trusted too';
  throw mixedTrustError(linked.root, `${trustProblem}. ${hint}`);
}

/** Returns the error of an untrusted definition with a hint that the definition comes from the journal. */
function recordedDefinitionError({ code, message, data }: LoopError): LoopError {
  const hint =
    'The definition is recorded in the journal and differs from the registered one; ' +
    'it runs only if you trust the directory of the journal too.';
  return new LoopError(code, `${message} ${hint}`, data);
}

/**
 * Returns the origin of a pinned definition, with the trust that it has now. One that equals the registered definition of
 * its directory shares the trust of that. One without a file must equal a registered definition that is trusted.
 */
function recordedOrigin(
  { definition, directory, file, ...pinned }: PinnedDefinition,
  current: RegisteredLoop | undefined,
  trusts: UnpinDeps['trusts'],
): DefinitionOrigin {
  const isEqual = current !== undefined && definition !== undefined && isSameDefinition(current, definition);
  const same = isEqual && current.origin.directory === directory ? current.origin : undefined;
  const trusted = same === undefined ? trusts?.(directory) === true : same.trusted;
  const isOfProgram = trusts === undefined && same === undefined;
  const config = pinned.config ?? same?.config;
  const isConfigTrusted =
    config?.directory === same?.config?.directory ? same?.config?.trusted : trusts?.(config?.directory) !== false;
  // guard: unknown-definition-equals-a-trusted-one
  const isUnknown = directory === undefined && !trusted && !(isEqual && !isUntrustedPart(current));
  return {
    directory,
    trusted,
    ...(file !== undefined && { file }),
    ...(config !== undefined && { config: { ...config, trusted: isConfigTrusted === true } }),
    ...((isOfProgram || isUnknown) && { isForeign: !isOfProgram }),
  };
}

function isSameDefinition({ digest }: RegisteredLoop, definition: Json): boolean {
  // guard: pinned-definition-is-the-current-one
  return digest === digestOfText(canonicalJson(definition));
}

function missingLoopError(registry: Registry, id: string, version: string): LoopError {
  const subject = `The turn needs the loop "${id}" ${shortVersion(version)}, which`;
  const failure = registry.failureOf(id);
  if (failure !== undefined) return failedDefinitionError(failure, subject);
  const other = registry.find(id)?.definition.version;
  const known = other === undefined ? '' : ` (version ${shortVersion(other)} is registered)`;
  const message = `${subject} is written in code; register it first${known}.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loopId: id, loopVersion: version });
}
