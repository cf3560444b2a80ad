/**
 * Turns and the definitions that they are pinned to: links the loop of a recorded turn, replays a turn, and finds the
 * turns in flight whose code has changed.
 */
import { linkLoop } from '../loops/link.js';
import type { Registry } from '../loops/registry.js';
import type { TurnStatus } from '../protocol/trace.js';
import type { Archive, StoredTurn } from './archive.js';
import { type BuildChange, buildChangeSince, type CodeChange, codeChangesSince, isSourceOnly } from './code-changes.js';
import type { HostOptions } from './host-options.js';
import { assertTrustedParts, type PinnedLoop, pin, unpin } from './pin.js';
import type { ReplayReport } from './replay.js';
import { unknownLoopError } from './turn-request.js';
import type { TurnRunner } from './turn-runner.js';

const MISSING_REASON = 'it is no longer registered. Register this version too, or run the earlier code.';

/** A turn that has not ended, and the loops defined in code whose definitions have changed since it started. */
export interface InFlightTurn {
  readonly turn: TurnStatus;
  /**
   * The changed loops. `breaks` is true if the turn cannot continue with the change; `reason` states why. A loop of
   * which only the source text has changed is listed if that breaks the turn.
   */
  readonly changed: readonly (CodeChange & { readonly breaks: boolean; readonly reason?: string })[];
  /** The change of `HostOptions.build`. The turn continues, but its approvals are requested again. */
  readonly build?: BuildChange;
}

/** The pinned turns of one host. */
export class PinnedTurns {
  private readonly options: HostOptions;
  private readonly registry: Registry;
  private readonly archive: Archive;
  private readonly turns: TurnRunner;

  constructor(options: HostOptions, archive: Archive, turns: TurnRunner) {
    this.options = options;
    this.registry = options.registry;
    this.archive = archive;
    this.turns = turns;
  }

  /** Returns the loop that a turn started with; see `link`. Throws DEFINITION_INVALID if parts of it are not trusted. */
  async loopOf(stored: StoredTurn): Promise<PinnedLoop> {
    const pinned = this.link(stored, await this.archive.pinnedText(stored));
    this.assertTrusted(stored, pinned);
    return pinned;
  }

  /** Throws DEFINITION_INVALID if a turn must not continue because something that it consists of is not trusted. */
  assertTrusted({ identity }: StoredTurn, pinned: PinnedLoop): void {
    // A turn that has run in this process is no invention of the journal.
    const isOwn = this.turns.keptLoop(identity.turnId) !== undefined;
    assertTrustedParts(pinned, isOwn ? undefined : this.options.untrustedJournal);
  }

  /**
   * Returns the loop that the turn started with, from the definitions that were recorded then (the pin). For a turn
   * without a pin, returns the loop that is registered under its id and version. Throws LOOP_NOT_FOUND if there is
   * none.
   */
  link({ identity }: StoredTurn, pinText: string | undefined): PinnedLoop {
    const { implementations = new Map(), trusts, build } = this.options;
    const { registry } = this;
    const { loopId, loopVersion, turnId } = identity;
    const kept = this.turns.keptLoop(turnId);
    if (pinText !== undefined) return unpin(pinText, { registry, implementations, trusts, build, kept });
    const registered = registry.find(loopId, loopVersion);
    if (registered !== undefined) return pin(linkLoop(registry, registered), build);
    throw unknownLoopError({ loop: loopId, version: loopVersion }, registry);
  }

  /** Replays a turn; see `Host.replay`. */
  async replay(turnId: string, against: 'then' | 'now'): Promise<ReplayReport> {
    const stored = await this.archive.get(turnId);
    const { loopId, loopVersion } = stored.identity;
    const current = against === 'now' ? this.registry.find(loopId, loopVersion) : undefined;
    const pinned =
      current === undefined ? await this.loopOf(stored) : pin(linkLoop(this.registry, current), this.options.build);
    return this.turns.replay(stored, pinned);
  }

  /**
   * Returns all turns that have not ended, with the loops in code and the build that have changed since each turn
   * started.
   */
  async inFlightTurns(): Promise<readonly InFlightTurn[]> {
    // A damaged session is listed with an error and has no turns that can be read.
    const open = (await this.archive.turns()).filter(
      ({ endedAt, status }) => endedAt === undefined && status !== 'error',
    );
    return Promise.all(open.map((turn) => this.changesOf(turn)));
  }

  private async changesOf(turn: TurnStatus): Promise<InFlightTurn> {
    const pinText = await this.archive.pinnedText(await this.archive.get(turn.turnId));
    if (pinText === undefined) return { turn, changed: [] };
    const changes = codeChangesSince(pinText, (id, version) => this.registry.find(id, version));
    const isComplete = changes.every(({ now }) => now === 'changed');
    const replayed = changes.length > 0 && isComplete ? await this.replay(turn.turnId, 'now') : undefined;
    const changed = changes.flatMap((change) => {
      if (change.now === 'missing') return [{ ...change, breaks: true, reason: MISSING_REASON }];
      if (replayed?.matches === false) return [{ ...change, breaks: true, reason: replayed.difference ?? '' }];
      return isSourceOnly(change.parts) ? [] : [{ ...change, breaks: false }];
    });
    const build = buildChangeSince(pinText, this.options.build);
    return { turn, changed, ...(build !== undefined && { build }) };
  }
}
