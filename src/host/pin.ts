/**
 * Pins: a turn is pinned to the definitions it began with. They are kept as one text beside its session, by digest, and a
 * turn that is resumed is linked from them, whatever the registry holds by then. Code cannot be kept: of a loop in code
 * only its name and the digest of its source are, and the code must still be there.
 */

import { LoopError } from '../base/errors.js';
import { digest } from '../journal/record.js';
import { canonical } from '../json/canonical.js';
import type { Implementation } from '../loops/implementation.js';
import { type Linked, linkedIn } from '../loops/link.js';
import { type Registered, Registry } from '../loops/registry.js';
import type { Json } from '../protocol/json.js';

/** What is kept of one definition. */
interface Kept {
  readonly id: string;
  readonly version: string;
  readonly digest: string;
  readonly definition?: Json;
  readonly directory?: string;
  readonly file?: string;
}

/** A linked loop whose pin can be kept: the loop carries the digest of the text. */
export interface Pinned extends Linked {
  readonly text: string;
}

/** A loop in code that is not what it was when the turn began. */
export interface Changed {
  readonly loop: string;
  readonly now: 'missing' | 'changed';
}

const pins = new WeakMap<Linked, Pinned>();

/** The pin of a linked loop, made once. */
export function pin(linked: Linked): Pinned {
  const known = pins.get(linked);
  if (known !== undefined) return known;
  const pinned = pinnedOf(linked);
  pins.set(linked, pinned);
  return pinned;
}

function pinnedOf(linked: Linked): Pinned {
  const text = JSON.stringify(linked.parts.map(keptOf));
  return { ...linked, loop: { ...linked.loop, definitionDigest: digest(text) }, text };
}

function keptOf({ definition, digest: own, origin: { directory, file }, code }: Registered): Kept {
  const { id, version } = definition;
  if (code !== undefined) return { id, version, digest: own };
  return {
    id,
    version,
    digest: own,
    definition: definition as unknown as Json,
    ...(directory !== undefined && { directory }),
    ...(file !== undefined && { file }),
  };
}

export interface Unpinning {
  readonly registry: Registry;
  readonly implementations: ReadonlyMap<string, Implementation>;
  /** Whether the operator of today trusts what was recorded of this directory and is not what is registered from there now. */
  trusts(directory: string | undefined): boolean;
}

/** Links what a turn was pinned to. */
export function unpin(text: string, { registry, implementations, trusts }: Unpinning): Pinned {
  const kept = JSON.parse(text) as readonly Kept[];
  const old = new Registry(implementations);
  for (const { id, version, definition, directory, file } of kept) {
    const now = registry.find(id, version);
    const code = definition === undefined ? now?.code : undefined;
    if (definition === undefined && code === undefined) throw gone(id, version);
    const trusted = isSame(now, definition, directory) ? now.origin.trusted : trusts(directory);
    try {
      old.add(definition ?? code, { directory, trusted, ...(file !== undefined && { file }) });
    } catch (thrown) {
      throw trusted || !(thrown instanceof LoopError) ? thrown : asRecorded(thrown);
    }
  }
  const [first] = kept;
  const root = first && old.find(first.id, first.version);
  if (root === undefined) throw gone(first?.id ?? '', first?.version ?? '');
  return pin(linkedIn(old, root));
}

/** A definition that may not run, with what is different about one that stands in a journal. */
function asRecorded({ code, message, data }: LoopError): LoopError {
  const why = 'This is a recorded definition, not the one there is now: it is trusted only if you trust the directory';
  return new LoopError(code, `${message} ${why} of the journal too.`, data);
}

/** True if what was recorded is what is registered now, from the same directory: then its trust is that of now. */
function isSame(now: Registered | undefined, definition: Json | undefined, directory?: string): now is Registered {
  if (now === undefined || definition === undefined || now.origin.directory !== directory) return false;
  // guard: pinned-definition-is-the-current-one
  return now.digest === digest(canonical(definition));
}

/** Loops in code that a pin names and that are not the same now. */
export function changedSince(text: string, registry: Registry): readonly Changed[] {
  return (JSON.parse(text) as readonly Kept[]).flatMap(({ id, version, digest: own, definition }) => {
    if (definition !== undefined) return [];
    const now = registry.find(id, version);
    if (now?.digest === own) return [];
    return [{ loop: `${id}@${version}`, now: now === undefined ? 'missing' : 'changed' } as const];
  });
}

function gone(id: string, version: string): LoopError {
  const message = `The turn needs the loop "${id}" ${version}, which was written in code and is not registered here.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loopId: id, loopVersion: version });
}
