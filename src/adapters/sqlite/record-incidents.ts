/**
 * Puts what the opening of a store found on record, and adds what was on record before: damage that this opening could not see any
 * more, because the anchor was written anew or only the heads were checked, is reported and refused until somebody accepts it.
 */
import { Fault } from '../../base/errors.js';
import type { Driver } from './driver.js';
import { type Damage, damageKeyOf, type IncidentRow, IncidentTable } from './incidents.js';
import { toReadFault } from './sqlite-faults.js';
import { isSessionRefused, refusalOf, type StoreHealth } from './store-inspection.js';

export interface RecordIncidentsOptions {
  readonly path: string;
  /** True if every loss is accepted that leaves something to go on with. */
  readonly acceptLoss: boolean;
  readonly now: number;
}

const ACCEPTED_BY_OPTION = { by: "accept: 'loss'" } as const;

/** True if nobody has accepted it. */
export function isOpenIncident({ incident }: IncidentRow): boolean {
  return incident.closed === undefined;
}

/** True for damage after which the session can go on with what is left, and for doubts about the store as a whole. */
export function canContinueAfter({ kind }: Damage): boolean {
  return kind !== 'damaged' && kind !== 'orphan' && kind !== 'file';
}

/** Records the findings; the report, the refusals and the record itself are what holds from now on. */
export function recordIncidents(driver: Driver, found: StoreHealth, options: RecordIncidentsOptions): StoreHealth {
  try {
    return recordAndMerge(driver, found, options);
  } catch (error) {
    const fault = toReadFault(error, options.path);
    if (fault.code !== 'STORE_DAMAGED') throw fault;
    const note = `the record of damage cannot be kept: ${fault.message}`;
    const message = `${options.path} can only be read: ${note}`;
    return {
      ...found,
      report: { ...found.report, damage: [...found.report.damage, { kind: 'file', note }] },
      writeFault: found.writeFault ?? new Fault('STORE_DAMAGED', message, { path: options.path }),
    };
  }
}

function recordAndMerge(driver: Driver, found: StoreHealth, { acceptLoss, now }: RecordIncidentsOptions): StoreHealth {
  const rows = new IncidentTable(driver);
  const before = rows.listOutstanding();
  const known = new Set(before.map(({ incident }) => damageKeyOf(incident)));
  const fresh = found.report.damage.filter((damage) => !known.has(damageKeyOf(damage)));
  let standing = before;
  let accepted = new Set<number>();
  if (found.writeFault === undefined && (fresh.length > 0 || acceptLoss)) {
    inTransaction(driver, () => {
      const sidsOf = ({ session = '' }: Damage): readonly number[] => found.refusals.get(session)?.sids ?? [];
      standing = [...before, ...fresh.map((damage) => rows.add(damage, sidsOf(damage), now))];
      const settled = acceptLoss
        ? standing.filter((item) => isOpenIncident(item) && canContinueAfter(item.incident))
        : [];
      accepted = new Set(settled.map(({ incident }) => incident.id));
      rows.close(accepted, 'continued', ACCEPTED_BY_OPTION, now);
    });
  }
  const damage = mergeReportedDamage(found.report.damage, standing);
  const remaining = standing.filter(({ incident }) => !accepted.has(incident.id));
  for (const { incident, sids } of remaining) {
    const { session = '' } = incident;
    // guard: recorded-damage-refused
    if (isSessionRefused(incident) && !found.refusals.has(session))
      found.refusals.set(session, refusalOf(incident, sids));
  }
  return { ...found, report: { ...found.report, damage }, incidents: remaining };
}

/** What was found now, then what is known from before; what was accepted is left out. */
function mergeReportedDamage(found: readonly Damage[], standing: readonly IncidentRow[]): readonly Damage[] {
  const byKey = new Map(standing.map((item) => [damageKeyOf(item.incident), item]));
  const now = found.flatMap((damage) => {
    const item = byKey.get(damageKeyOf(damage));
    byKey.delete(damageKeyOf(damage));
    if (item === undefined) return [damage];
    return isOpenIncident(item) ? [item.incident] : [];
  });
  return [
    ...now,
    // guard: recorded-damage-reported
    ...[...byKey.values()].filter(isOpenIncident).map(({ incident }) => incident),
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
