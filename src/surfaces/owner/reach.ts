/**
 * Finding a desk: the store's owner if there is one that listens, else a host of our own. An owner may go, or come,
 * between two requests, so each request finds its way anew; only what nobody has heard is asked a second time.
 */
import { setTimeout } from 'node:timers/promises';
import { Fault } from '../../journal/errors.js';
import { type Composed, compose, type Definitions, type ProjectSettings } from '../compose.js';
import { type Desk, hostDesk } from './desk.js';
import type { Listener } from './listener.js';
import { type OwnerNote, readNote, removeNote, trueName, writeNote } from './note.js';
import { Unreached } from './remote.js';

/** How long an owner that is just coming or going may take, in milliseconds. */
const PATIENCE = 2000;
const PAUSE = 50;

export interface ReachOptions {
  /** What a host of our own is made with; asked for only when there is no other. */
  readonly definitions: () => Promise<Definitions>;
  /** Whether a store that is not there is made. */
  readonly make: boolean;
  /** Whether to answer other processes while the store is ours. */
  readonly serve?: boolean;
}

/** Asks whoever has the store. */
export class Reach {
  private readonly settings: ProjectSettings;
  private readonly options: ReachOptions;
  private local: { readonly composed: Composed; readonly desk: Desk } | undefined;
  private ear: Promise<Listener | undefined> | undefined;
  /** Notes that lead nowhere. */
  private readonly stale = new Set<string>();
  /** The process that answered the last request, if it was not this one. */
  owner: number | undefined;

  constructor(settings: ProjectSettings, options: ReachOptions) {
    this.settings = settings;
    this.options = options;
  }

  /** Asks something of the desk there is. */
  async ask<T>(question: (desk: Desk) => Promise<T>): Promise<T> {
    const until = performance.now() + PATIENCE;
    for (;;) {
      const note = this.local === undefined ? this.note() : undefined;
      try {
        if (note === undefined) return await question(await this.own());
        const { remoteDesk } = await import('./remote.js');
        this.owner = note.pid;
        return await question(remoteDesk(note.url, note.token));
      } catch (thrown) {
        if (!passes(thrown) || performance.now() > until) throw told(thrown);
        if (thrown instanceof Unreached && note !== undefined) this.stale.add(note.token);
      }
      await setTimeout(PAUSE);
    }
  }

  private note(): OwnerNote | undefined {
    const { data, store } = this.settings;
    const note = store.kind === 'sqlite' ? readNote(data, store.path) : undefined;
    return note === undefined || this.stale.has(note.token) ? undefined : note;
  }

  private async own(): Promise<Desk> {
    if (this.local !== undefined) return this.local.desk;
    const { definitions, make, serve } = this.options;
    const composed = await compose(this.settings, { definitions: await definitions(), make });
    const desk = hostDesk(composed.host);
    this.local = { composed, desk };
    this.owner = undefined;
    if (serve === true && composed.durable) this.ear = this.listen(desk);
    return desk;
  }

  /** Without an ear the work is done all the same; others are told that the store is owned. */
  private async listen(desk: Desk): Promise<Listener | undefined> {
    const { data, store } = this.settings;
    if (store.kind !== 'sqlite') return undefined;
    try {
      const listener = await (await import('./listener.js')).listen(desk);
      const { url, token } = listener;
      process.once('exit', () => removeNote(data, token));
      writeNote(data, { url, token, pid: process.pid, store: trueName(store.path) });
      return listener;
    } catch {
      return undefined;
    }
  }

  /** Whether other processes still wait for work that is done here. */
  async busy(): Promise<boolean> {
    return ((await this.ear)?.busy ?? 0) > 0;
  }

  /** Lets the store go, once nobody waits for an answer any more. */
  async close(): Promise<void> {
    const listener = await this.ear;
    if (listener !== undefined) {
      await listener.close();
      removeNote(this.settings.data, listener.token);
    }
    await this.local?.composed.close();
  }
}

/** Whether it may pass if it is tried again at once. */
function passes(thrown: unknown): boolean {
  return thrown instanceof Unreached || (thrown instanceof Fault && thrown.code === 'STORE_OWNED');
}

function told(thrown: unknown): unknown {
  if (!(thrown instanceof Fault) || thrown.code !== 'STORE_OWNED') return thrown;
  return new Fault(thrown.code, `${thrown.message} It does not listen, so it cannot be asked from here.`, thrown.data);
}
