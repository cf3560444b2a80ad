/**
 * Pins: a turn is pinned to the definitions it began with. They are kept as one text beside its session, by digest, and a
 * turn that is resumed is linked from them, whatever the registry holds by then. Code cannot be kept: of a loop in code
 * only its name and the digest of its source are, and the code must still be there.
 */

import { LoopError } from '../base/errors.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import { type LinkedLoop, linkLoop } from '../loops/link.js';
import { type RegisteredLoop, Registry } from '../loops/registry.js';
import type { ToolImplementation } from '../loops/tool-implementation.js';
import type { Json } from '../protocol/json.js';

/** What is kept of one definition. */
interface PinnedDefinition {
  readonly id: string;
  readonly version: string;
  readonly digest: string;
  readonly definition?: Json;
  readonly directory?: string;
  readonly file?: string;
}

/** A linked loop whose pin can be kept: the loop carries the digest of the text. */
export interface PinnedLoop extends LinkedLoop {
  readonly pinText: string;
}

/** A loop in code that is not what it was when the turn began. */
export interface CodeChange {
  readonly loop: string;
  readonly now: 'missing' | 'changed';
}

const pinCache = new WeakMap<LinkedLoop, PinnedLoop>();

/** The pin of a linked loop, made once. */
export function pin(linked: LinkedLoop): PinnedLoop {
  const known = pinCache.get(linked);
  if (known !== undefined) return known;
  const pinned = createPin(linked);
  pinCache.set(linked, pinned);
  return pinned;
}

function createPin(linked: LinkedLoop): PinnedLoop {
  const text = JSON.stringify(linked.definitions.map(pinnedDefinitionOf));
  return { ...linked, loop: { ...linked.loop, definitionDigest: digestOfText(text) }, pinText: text };
}

function pinnedDefinitionOf({
  definition,
  digest: own,
  origin: { directory, file },
  definedLoop,
}: RegisteredLoop): PinnedDefinition {
  const { id, version } = definition;
  if (definedLoop !== undefined) return { id, version, digest: own };
  return {
    id,
    version,
    digest: own,
    definition: definition as unknown as Json,
    ...(directory !== undefined && { directory }),
    ...(file !== undefined && { file }),
  };
}

export interface UnpinDeps {
  readonly registry: Registry;
  readonly implementations: ReadonlyMap<string, ToolImplementation>;
  /** Whether the operator of today trusts what was recorded of this directory and is not what is registered from there now. */
  trusts(directory: string | undefined): boolean;
}

/** Links what a turn was pinned to. */
export function unpin(text: string, { registry, implementations, trusts }: UnpinDeps): PinnedLoop {
  const kept = JSON.parse(text) as readonly PinnedDefinition[];
  const old = new Registry(implementations);
  for (const { id, version, definition, directory, file } of kept) {
    const now = registry.find(id, version);
    const code = definition === undefined ? now?.definedLoop : undefined;
    if (definition === undefined && code === undefined) throw missingLoopError(id, version);
    const trusted = isUnchanged(now, definition, directory) ? now.origin.trusted : trusts(directory);
    try {
      old.add(definition ?? code, { directory, trusted, ...(file !== undefined && { file }) });
    } catch (thrown) {
      throw trusted || !(thrown instanceof LoopError) ? thrown : recordedDefinitionError(thrown);
    }
  }
  const [first] = kept;
  const root = first && old.find(first.id, first.version);
  if (root === undefined) throw missingLoopError(first?.id ?? '', first?.version ?? '');
  return pin(linkLoop(old, root));
}

/** A definition that may not run, with what is different about one that stands in a journal. */
function recordedDefinitionError({ code, message, data }: LoopError): LoopError {
  const why = 'This is a recorded definition, not the one there is now: it is trusted only if you trust the directory';
  return new LoopError(code, `${message} ${why} of the journal too.`, data);
}

/** True if what was recorded is what is registered now, from the same directory: then its trust is that of now. */
function isUnchanged(
  now: RegisteredLoop | undefined,
  definition: Json | undefined,
  directory?: string,
): now is RegisteredLoop {
  if (now === undefined || definition === undefined || now.origin.directory !== directory) return false;
  // guard: pinned-definition-is-the-current-one
  return now.digest === digestOfText(canonicalJson(definition));
}

/** Loops in code that a pin names and that are not the same now. */
export function codeChangesSince(text: string, registry: Registry): readonly CodeChange[] {
  return (JSON.parse(text) as readonly PinnedDefinition[]).flatMap(({ id, version, digest: own, definition }) => {
    if (definition !== undefined) return [];
    const now = registry.find(id, version);
    if (now?.digest === own) return [];
    return [{ loop: `${id}@${version}`, now: now === undefined ? 'missing' : 'changed' } as const];
  });
}

function missingLoopError(id: string, version: string): LoopError {
  const message = `The turn needs the loop "${id}" ${version}, which was written in code and is not registered here.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loopId: id, loopVersion: version });
}
