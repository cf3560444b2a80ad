/**
 * What the host keeps of a turn while it runs, folded from the entries as they are written: what its bodies may ask for
 * and what those who watch are told. A turn that no agent and no approval has a part in pays for none of it.
 */
import type { Session } from '../kernel/session.js';
import { Watches } from '../loops/agent/watch.js';
import type { NamedModel, Occasion } from '../loops/bench.js';
import type { Entry } from '../protocol/entry.js';
import type { LiveDelta } from '../protocol/live.js';
import type { ModelMessage } from '../protocol/model.js';
import type { TraceEvent } from '../protocol/trace.js';
import { Answers } from '../views/answers.js';
import { Approvals } from '../views/approvals.js';
import { Conversation } from '../views/conversation.js';
import { History } from '../views/history.js';
import { Mailbox } from '../views/mailbox.js';
import { Tracing } from '../views/trace.js';
import { type Live, unharmed } from './live.js';

/** Who starts a turn, and who may answer for it. */
export interface Principals {
  readonly principal?: string;
  readonly approvers?: readonly string[];
}

export const OPENED = 'rondo.turn.opened';

interface Attended {
  readonly sessionId: string;
  readonly turnId: string;
  /** Whether agents or approvals have a part in it. */
  readonly governed: boolean;
  /** All entries of the session so far. */
  readonly past: readonly Entry[];
  readonly live: Live;
  readonly onEvent?: ((event: TraceEvent) => void) | undefined;
}

export class Attendance implements Occasion {
  readonly sessionId: string;
  readonly turnId: string;
  readonly entries: Entry[] = [];
  session: Session | undefined;
  readonly governed: Governed | undefined;
  private readonly tracing: Tracing | undefined;
  private readonly answers = new Answers();

  constructor({ sessionId, turnId, past, governed, onEvent, live }: Attended) {
    this.sessionId = sessionId;
    this.turnId = turnId;
    this.tracing = onEvent && new Tracing(turnId, (event) => unharmed(() => onEvent(event)));
    this.governed = governed ? new Governed(sessionId, turnId, live) : undefined;
    for (const entry of past) this.hear(entry);
    this.governed?.begin();
  }

  /** Hears of every entry of the session, those of the past first. */
  hear(entry: Entry): void {
    this.entries.push(entry);
    this.tracing?.apply(entry);
    if (entry.key.startsWith(this.turnId)) this.answers.apply(entry);
    this.governed?.hear(entry);
  }

  answered({ id, model }: NamedModel, by: 'turn' | 'session'): number {
    const own = this.answers.count(id, model);
    return by === 'turn' ? own : own + (this.governed?.earlier.count(id, model) ?? 0);
  }

  /** What was said before this turn began: a turn that is resumed must not learn what came later. */
  history(): readonly ModelMessage[] {
    return historyBefore(this.turnId, this.entries);
  }

  waiting(): { readonly steer: number; readonly queue: number } {
    const { mailbox } = this.governed ?? {};
    return { steer: mailbox?.count('steer') ?? 0, queue: mailbox?.count('queue') ?? 0 };
  }

  get live(): ((delta: LiveDelta) => void) | undefined {
    return this.governed?.speak;
  }

  get watches(): Watches {
    return this.governed?.watches ?? NOBODY;
  }
}

/** Of turns without agents: nobody watches over them. */
const NOBODY = new Watches();

/** What is kept of a turn that agents or approvals have a part in. */
export class Governed {
  readonly watches = new Watches();
  readonly approvals: Approvals;
  readonly mailbox = new Mailbox();
  readonly earlier = new Answers();
  principals: Principals = {};
  readonly speak: (delta: LiveDelta) => void;
  private readonly turnId: string;
  private readonly conversation: Conversation;
  /** Whether what is heard is news, and not what was known before. */
  private present = false;

  constructor(sessionId: string, turnId: string, live: Live) {
    this.turnId = turnId;
    this.approvals = new Approvals(sessionId);
    this.speak = (delta) => live.delta(delta);
    this.conversation = new Conversation(sessionId, (envelope, refusal) => {
      if (this.present) live.envelope(envelope, refusal);
    });
  }

  begin(): void {
    this.present = true;
  }

  hear(entry: Entry): void {
    const { key, type } = entry;
    this.approvals.apply(entry);
    this.mailbox.apply(entry);
    this.conversation.apply(entry);
    if (!key.startsWith(this.turnId)) this.earlier.apply(entry);
    if (type === OPENED && key === `#${this.turnId}`) this.principals = (entry.value ?? {}) as Principals;
  }
}

export function historyBefore(turnId: string, entries: readonly Entry[]): readonly ModelMessage[] {
  const history = new History();
  for (const entry of entries) {
    if (entry.key === turnId) break;
    history.apply(entry);
  }
  return history.messages();
}
