// Checks of a journal that hold after any crash: order, matching ends, and nothing after an end, a race or a cancel.

import { expandLeaves } from '../../src/journal/leaf-entries.js';
import type { Entry } from '../../src/protocol/entry.js';
import { duplicates } from './kernel-probe.js';

/** Returns the waits, timers and effects in doubt that are open and not part of a finished step. */
export function openSteps(stored: readonly Entry[]): string[] {
  const entries = expandLeaves(stored);
  const open = new Map<string, string>();
  const done: string[] = [];
  for (const e of entries) {
    if (e.type === 'wait.opened') open.set(e.key, 'signal');
    if (e.type === 'timer.set') open.set(e.key, 'timer');
    if (e.type === 'effect.requested' && e.safety === 'once') open.set(e.key.split('~')[0] ?? '', 'doubt');
    if (['wait.settled', 'timer.fired', 'effect.returned', 'effect.failed'].includes(e.type)) open.delete(e.key);
    if (['race.won', 'call.completed', 'call.errored', 'effect.settled'].includes(e.type)) done.push(`${e.key}/`);
  }
  return [...open]
    .filter(([key]) => !done.some((d) => key.startsWith(d)))
    .map(([key, kind]) => `${kind} ${key}`)
    .sort();
}

/** Returns the violations of a journal, each with the prefix `where`. */
export function auditJournal(stored: readonly Entry[], where: string): string[] {
  const entries = expandLeaves(stored);
  const violations: string[] = [];
  for (const [i, e] of stored.entries()) if (e.seq !== i) violations.push(`seq ${e.seq} at ${i}`);
  for (const d of duplicates(entries)) violations.push(`duplicate ${d}`);
  const opened = new Set<string>();
  const closed = new Map<string, number>();
  const won = new Map<string, number>();
  let cancelled = false;
  const closes: Record<string, string> = {
    'call.completed': 'call.started',
    'call.errored': 'call.started',
    'effect.settled': 'effect.opened',
    'timer.fired': 'timer.set',
    'wait.settled': 'wait.opened',
    'race.won': 'group.opened',
  };
  const receivedSignals = new Set<string>();
  for (const e of entries) {
    const mayBeLate = /^effect\.(returned|failed|decided)$/.test(e.type);
    if (e.type in closes && !opened.has(`${closes[e.type]} ${e.key}`))
      violations.push(`${e.type} ${e.key} without opening`);
    if ((e.type === 'effect.returned' || e.type === 'effect.failed') && !opened.has(`effect.requested ${e.key}`))
      violations.push(`${e.type} ${e.key} without intent`);
    if (!mayBeLate && e.type !== 'signal.received') {
      for (const key of closed.keys())
        if (e.key.startsWith(`${key}/`)) violations.push(`${e.type} ${e.key} after the end of ${key}`);
      for (const [key, winner] of won)
        if (e.key.startsWith(`${key}/`)) violations.push(`${e.type} ${e.key} after race ${key} was won by ${winner}`);
    }
    if (
      cancelled &&
      [
        'effect.requested',
        'effect.opened',
        'call.started',
        'timer.set',
        'wait.opened',
        'group.opened',
        'fact.made',
      ].includes(e.type)
    )
      violations.push(`${e.type} ${e.key} after cancel`);
    if (e.type === 'wait.settled') {
      if (receivedSignals.has(e.signalId ?? '')) violations.push(`signal ${e.signalId} received twice`);
      receivedSignals.add(e.signalId ?? '');
    }
    opened.add(`${e.type} ${e.key}`);
    if (e.type === 'call.completed' || e.type === 'call.errored') closed.set(e.key, e.seq);
    if (e.type === 'race.won') won.set(e.key, e.winnerIndex ?? -1);
    if (e.type === 'cancel.requested') cancelled = true;
  }
  return violations.map((b) => `${where}: ${b}`);
}
