/**
 * Puts what the opening of a store found on record, and adds what was on record before: damage that this opening could not see any
 * more, because the anchor was written anew or only the heads were checked, is reported and refused until somebody accepts it.
 */
import { Fault } from '../../base/errors.js';
import { type Findings, isRefused, refusalOf } from './check.js';
import type { Driver } from './driver.js';
import { readFault } from './failure.js';
import { type Damage, Incidents, keyOf, type Recorded } from './incidents.js';

export interface RecordOptions {
  readonly path: string;
  /** True if every loss is accepted that leaves something to go on with. */
  readonly accept: boolean;
  readonly now: number;
}

const ACCEPTED = { by: "accept: 'loss'" } as const;

/** True if nobody has accepted it. */
export function isOpen({ incident }: Recorded): boolean {
  return incident.closed === undefined;
}

/** True for damage after which the session can go on with what is left, and for doubts about the store as a whole. */
export function canContinue({ kind }: Damage): boolean {
  return kind !== 'damaged' && kind !== 'orphan' && kind !== 'file';
}

/** Records the findings; the report, the refusals and the record itself are what holds from now on. */
export function recordFindings(driver: Driver, found: Findings, options: RecordOptions): Findings {
  try {
    return recorded(driver, found, options);
  } catch (error) {
    const fault = readFault(error, options.path);
    if (fault.code !== 'STORE_DAMAGED') throw fault;
    const note = `the record of damage cannot be kept: ${fault.message}`;
    const message = `${options.path} can only be read: ${note}`;
    return {
      ...found,
      report: { ...found.report, damage: [...found.report.damage, { kind: 'file', note }] },
      unwritable: found.unwritable ?? new Fault('STORE_DAMAGED', message, { path: options.path }),
    };
  }
}

function recorded(driver: Driver, found: Findings, { accept, now }: RecordOptions): Findings {
  const rows = new Incidents(driver);
  const before = rows.standing();
  const known = new Set(before.map(({ incident }) => keyOf(incident)));
  const fresh = found.report.damage.filter((damage) => !known.has(keyOf(damage)));
  let standing = before;
  let accepted = new Set<number>();
  if (found.unwritable === undefined && (fresh.length > 0 || accept)) {
    inTransaction(driver, () => {
      const sidsOf = ({ session = '' }: Damage): readonly number[] => found.refusals.get(session)?.sids ?? [];
      standing = [...before, ...fresh.map((damage) => rows.add(damage, sidsOf(damage), now))];
      const settled = accept ? standing.filter((item) => isOpen(item) && canContinue(item.incident)) : [];
      accepted = new Set(settled.map(({ incident }) => incident.id));
      rows.close(accepted, 'continued', ACCEPTED, now);
    });
  }
  const damage = reportOf(found.report.damage, standing);
  const remaining = standing.filter(({ incident }) => !accepted.has(incident.id));
  for (const { incident, sids } of remaining) {
    const { session = '' } = incident;
    // guard: recorded-damage-refused
    if (isRefused(incident) && !found.refusals.has(session)) found.refusals.set(session, refusalOf(incident, sids));
  }
  return { ...found, report: { ...found.report, damage }, record: remaining };
}

/** What was found now, then what is known from before; what was accepted is left out. */
function reportOf(found: readonly Damage[], standing: readonly Recorded[]): readonly Damage[] {
  const byKey = new Map(standing.map((item) => [keyOf(item.incident), item]));
  const now = found.flatMap((damage) => {
    const item = byKey.get(keyOf(damage));
    byKey.delete(keyOf(damage));
    if (item === undefined) return [damage];
    return isOpen(item) ? [item.incident] : [];
  });
  return [
    ...now,
    // guard: recorded-damage-reported
    ...[...byKey.values()].filter(isOpen).map(({ incident }) => incident),
  ];
}

function inTransaction(driver: Driver, work: () => void): void {
  driver.exec('BEGIN IMMEDIATE');
  try {
    work();
    driver.exec('COMMIT');
  } catch (error) {
    try {
      driver.exec('ROLLBACK');
    } catch {
      // SQLite already rolled back; the first error is the one to tell.
    }
    throw error;
  }
}
