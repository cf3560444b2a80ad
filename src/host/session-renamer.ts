/**
 * Renames the turns of a session in its entries, for a copy under another name. Keys of steps, ids of approvals, the
 * names of waits and signals for them, and the addresses of signals begin with the id of a turn. Values are renamed where
 * a text is exactly such a key or id: a body that passes on its key, or the result of a call, then finds its recorded
 * step again. Other texts are never changed, and no grant is: a copy with the same grant spends from the same budget.
 */
import { isObject, ownProperty } from '../base/own-property.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { TURN_GRANTED, TURN_OPENED } from '../views/turns.js';

/** What follows the id of a turn in a key of a step, and in the id of an approval. */
const STEP_PATH = /^(?:\/\d+)+(?:~\d+)?$/;
const APPROVAL_SUFFIX = /^:[A-Za-z0-9]{1,16}$/;

/** Prefixes of keys that contain the id of a turn or of an approval. */
const PREFIXES = ['#', 'approval '];
const SIGNAL_PREFIX = 'signal ';

/** Renames the turns of one session. */
export class SessionRenamer {
  private readonly newIds: ReadonlyMap<string, string>;

  /** `newIds` are the new ids of all turns, by their old ids. */
  constructor(newIds: ReadonlyMap<string, string>) {
    this.newIds = newIds;
  }

  /** Returns the entry of the copy. */
  entry(entry: Entry): Entry {
    const { key, type, name, attemptKey, waitKey, turnId, signalId, value, error, reason } = entry;
    const isNamedAfterApproval = type === 'wait.opened' || type === 'signal.received';
    return {
      ...entry,
      key: this.key(key),
      ...(name !== undefined && isNamedAfterApproval && { name: this.key(name) }),
      ...(attemptKey !== undefined && { attemptKey: this.key(attemptKey) }),
      ...(waitKey !== undefined && { waitKey: this.key(waitKey) }),
      ...(turnId !== undefined && { turnId: this.key(turnId) }),
      ...(signalId !== undefined && { signalId: this.key(signalId) }),
      ...(reason !== undefined && type === 'signal.discarded' && { reason: reason.replace(key, () => this.key(key)) }),
      ...(value !== undefined && { value: this.entryValue(type, value) }),
      ...(error?.data !== undefined && { error: { ...error, data: this.value(error.data) } }),
    };
  }

  /** Returns the new form of a key, a name or a delivery id. */
  private key(text: string): string {
    if (text.startsWith(SIGNAL_PREFIX)) {
      const [turnId = '', ...rest] = text.slice(SIGNAL_PREFIX.length).split(' ');
      return [`${SIGNAL_PREFIX}${this.reference(turnId)}`, ...rest].join(' ');
    }
    const prefix = PREFIXES.find((each) => text.startsWith(each)) ?? '';
    return `${prefix}${this.reference(text.slice(prefix.length))}`;
  }

  /** Returns the new form of the id of a turn, a key of a step or the id of an approval; any other text as it is. */
  private reference(text: string): string {
    const whole = this.newIds.get(text);
    if (whole !== undefined) return whole;
    const slash = text.indexOf('/');
    const end = slash === -1 ? text.lastIndexOf(':') : slash;
    if (end <= 0) return text;
    const newId = this.newIds.get(text.slice(0, end));
    const suffix = text.slice(end);
    if (newId === undefined || !(slash === -1 ? APPROVAL_SUFFIX : STEP_PATH).test(suffix)) return text;
    return `${newId}${suffix}`;
  }

  /** Returns the value of an entry. The id of a grant names its budget, and may equal the id of a turn. */
  private entryValue(type: string, value: Json): Json {
    if (type === TURN_GRANTED) return value;
    const renamed = this.value(value);
    const grant = type === TURN_OPENED ? ownProperty(value, 'grant') : undefined;
    // guard: fork-keeps-grant
    return grant === undefined || !isObject(renamed) ? renamed : { ...renamed, grant };
  }

  private value(value: Json): Json {
    if (typeof value === 'string') return this.reference(value);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.value(item as Json));
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.value(member as Json)]));
  }
}
