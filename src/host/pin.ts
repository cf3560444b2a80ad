/**
 * Pins: a turn is pinned to the definitions that it started with. They are stored as one blob (the pin), and a
 * resumed turn is linked from them, independent of the current registry. Code cannot be stored: for a loop in code the
 * pin has its id, version and digest, and the loop must be registered when the turn continues.
 */

import { LoopError } from '../base/errors.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import { failedDefinitionError } from '../loops/failed-definition.js';
import { type LinkedLoop, linkLoop } from '../loops/link.js';
import { type RegisteredLoop, Registry } from '../loops/registry.js';
import type { ToolImplementation } from '../loops/tool-implementation.js';
import type { Json } from '../protocol/json.js';

/** One definition of a pin. A loop in code has no `definition`. */
interface PinnedDefinition {
  readonly id: string;
  readonly version: string;
  readonly digest: string;
  readonly definition?: Json;
  readonly directory?: string;
  readonly file?: string;
}

/** A linked loop and its pin as JSON text. The loop's `definitionDigest` is the digest of this text. */
export interface PinnedLoop extends LinkedLoop {
  readonly pinText: string;
}

/** A loop in code that has changed, or is no longer registered, since the turn started. */
export interface CodeChange {
  /** The loop as `id@version`. */
  readonly loop: string;
  readonly now: 'missing' | 'changed';
}

const pinCache = new WeakMap<LinkedLoop, PinnedLoop>();

/** Returns a linked loop with its pin, which is computed once for each linked loop. */
export function pin(linked: LinkedLoop): PinnedLoop {
  const cached = pinCache.get(linked);
  if (cached !== undefined) return cached;
  const pinned = createPin(linked);
  pinCache.set(linked, pinned);
  return pinned;
}

function createPin(linked: LinkedLoop): PinnedLoop {
  const pinText = JSON.stringify(linked.definitions.map(pinnedDefinitionOf));
  return { ...linked, loop: { ...linked.loop, definitionDigest: digestOfText(pinText) }, pinText };
}

function pinnedDefinitionOf({
  definition,
  digest,
  origin: { directory, file },
  definedLoop,
}: RegisteredLoop): PinnedDefinition {
  const { id, version } = definition;
  if (definedLoop !== undefined) return { id, version, digest };
  return {
    id,
    version,
    digest,
    definition: definition as unknown as Json,
    ...(directory !== undefined && { directory }),
    ...(file !== undefined && { file }),
  };
}

/** What is needed to link a pinned loop. */
interface UnpinDeps {
  readonly registry: Registry;
  readonly implementations: ReadonlyMap<string, ToolImplementation>;
  /**
   * Returns true if the operator trusts recorded definitions of this directory that differ from the registered ones.
   */
  trusts(directory: string | undefined): boolean;
}

/**
 * Links the pinned definitions of a turn; the first one is the root. Throws LOOP_NOT_FOUND if a loop in code is not
 * registered, and DEFINITION_INVALID if a definition cannot be registered, for example because it is not trusted.
 */
export function unpin(pinText: string, { registry, implementations, trusts }: UnpinDeps): PinnedLoop {
  const pinnedDefinitions = JSON.parse(pinText) as readonly PinnedDefinition[];
  const pinnedRegistry = new Registry(implementations, { areRecorded: true });
  for (const { id, version, definition, directory, file } of pinnedDefinitions) {
    const current = registry.find(id, version);
    const code = definition === undefined ? current?.definedLoop : undefined;
    if (definition === undefined && code === undefined) throw missingLoopError(id, version, registry);
    const trusted = isUnchanged(current, definition, directory) ? current.origin.trusted : trusts(directory);
    try {
      pinnedRegistry.add(definition ?? code, { directory, trusted, ...(file !== undefined && { file }) });
    } catch (thrown) {
      throw trusted || !(thrown instanceof LoopError) ? thrown : recordedDefinitionError(thrown);
    }
  }
  const [first] = pinnedDefinitions;
  const root = first && pinnedRegistry.find(first.id, first.version);
  if (root === undefined) throw missingLoopError(first?.id ?? '', first?.version ?? '', registry);
  return pin(linkLoop(pinnedRegistry, root));
}

/** Returns the error of an untrusted definition with a hint that the definition comes from the journal. */
function recordedDefinitionError({ code, message, data }: LoopError): LoopError {
  const hint =
    'The definition is recorded in the journal and differs from the registered one; ' +
    'it runs only if you trust the directory of the journal too.';
  return new LoopError(code, `${message} ${hint}`, data);
}

/**
 * Returns true if the recorded definition equals the registered one from the same directory, and so shares its trust.
 */
function isUnchanged(
  current: RegisteredLoop | undefined,
  definition: Json | undefined,
  directory?: string,
): current is RegisteredLoop {
  if (current === undefined || definition === undefined || current.origin.directory !== directory) return false;
  // guard: pinned-definition-is-the-current-one
  return current.digest === digestOfText(canonicalJson(definition));
}

/** Returns the loops in code of a pin that have changed or are no longer registered. */
export function codeChangesSince(pinText: string, registry: Registry): readonly CodeChange[] {
  return (JSON.parse(pinText) as readonly PinnedDefinition[]).flatMap(({ id, version, digest, definition }) => {
    if (definition !== undefined) return [];
    const current = registry.find(id, version);
    if (current?.digest === digest) return [];
    return [{ loop: `${id}@${version}`, now: current === undefined ? 'missing' : 'changed' } as const];
  });
}

function missingLoopError(id: string, version: string, registry: Registry): LoopError {
  const subject = `The turn needs the loop "${id}" ${version}, which`;
  const failure = registry.failureOf(id);
  if (failure !== undefined) return failedDefinitionError(failure, subject);
  const message = `${subject} is written in code; register it first.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loopId: id, loopVersion: version });
}
