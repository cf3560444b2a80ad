/**
 * Logs the damage that opening a store found, and merges it with earlier incidents. Damage that this check could not
 * detect again, because the anchor was rewritten or only the heads were checked, is still reported and refused until it
 * is accepted.
 */
import { Fault } from '../../base/errors.js';
import type { RecordHasher } from '../../journal/record.js';
import type { Driver } from './driver.js';
import { type Damage, damageKeyOf, type IncidentRow, IncidentTable } from './incidents.js';
import { toReadFault } from './sqlite-faults.js';
import { isSessionRefused, refusalOf, type StoreHealth } from './store-inspection.js';

/** Options of `recordIncidents`. */
interface RecordIncidentsOptions {
  readonly path: string;
  /** True if every loss after which a session can continue is accepted. */
  readonly acceptLoss: boolean;
  readonly hasher: RecordHasher;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const ACCEPTED_BY_OPTION = { by: "accept: 'loss'" } as const;

/** True if the incident is not closed: it was not accepted, and its session was not removed. */
export function isOpenIncident({ incident }: IncidentRow): boolean {
  return incident.closed === undefined;
}

/**
 * True if a session with this damage can continue with its remaining entries, or if the damage is that of the anchor.
 */
export function canContinueAfter({ kind }: Damage): boolean {
  return kind !== 'damaged' && kind !== 'orphan' && kind !== 'file' && kind !== 'removal';
}

/**
 * Logs the findings, unless the store is read-only, and returns the health of the store with the merged report,
 * refusals and incidents. If the log itself is damaged, the store becomes read-only.
 */
export function recordIncidents(driver: Driver, findings: StoreHealth, options: RecordIncidentsOptions): StoreHealth {
  try {
    return recordAndMerge(driver, findings, options);
  } catch (error) {
    const fault = toReadFault(error, options.path);
    if (fault.code !== 'STORE_DAMAGED') throw fault;
    const note = `the log of damage cannot be written: ${fault.message}`;
    const message = `${options.path} can only be read: ${note}`;
    return {
      ...findings,
      report: { ...findings.report, damage: [...findings.report.damage, { kind: 'file', note }] },
      writeFault: findings.writeFault ?? new Fault('STORE_DAMAGED', message, { path: options.path }),
    };
  }
}

function recordAndMerge(
  driver: Driver,
  findings: StoreHealth,
  { acceptLoss, now, hasher }: RecordIncidentsOptions,
): StoreHealth {
  const table = new IncidentTable(driver, hasher);
  const earlier = table.listOutstanding();
  const earlierKeys = new Set(earlier.map(({ incident }) => damageKeyOf(incident)));
  const newDamage = findings.report.damage.filter((damage) => !earlierKeys.has(damageKeyOf(damage)));
  let outstanding = earlier;
  let accepted = new Set<number>();
  if (findings.writeFault === undefined && (newDamage.length > 0 || acceptLoss)) {
    inTransaction(driver, () => {
      const sidsOf = ({ session = '' }: Damage): readonly number[] => findings.refusals.get(session)?.sids ?? [];
      outstanding = [...earlier, ...newDamage.map((damage) => table.add(damage, sidsOf(damage), now))];
      const continued = acceptLoss
        ? outstanding.filter((item) => isOpenIncident(item) && canContinueAfter(item.incident))
        : [];
      accepted = new Set(continued.map(({ incident }) => incident.id));
      table.close(accepted, 'continued', ACCEPTED_BY_OPTION, now);
    });
  }
  const damage = mergeReportedDamage(findings.report.damage, outstanding);
  const remaining = outstanding.filter(({ incident }) => !accepted.has(incident.id));
  for (const { incident, sids } of remaining) {
    const { session = '' } = incident;
    // guard: recorded-damage-refused
    if (isSessionRefused(incident) && !findings.refusals.has(session))
      findings.refusals.set(session, refusalOf(incident, sids));
  }
  return { ...findings, report: { ...findings.report, damage }, incidents: remaining };
}

/** Returns the damage that was found now, followed by earlier open damage. Damage accepted earlier is omitted. */
function mergeReportedDamage(found: readonly Damage[], outstanding: readonly IncidentRow[]): readonly Damage[] {
  const byKey = new Map(outstanding.map((item) => [damageKeyOf(item.incident), item]));
  const current = found.flatMap((damage) => {
    const item = byKey.get(damageKeyOf(damage));
    byKey.delete(damageKeyOf(damage));
    if (item === undefined) return [damage];
    return isOpenIncident(item) ? [item.incident] : [];
  });
  return [
    ...current,
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
      // SQLite has already rolled back. The original error is thrown.
    }
    throw error;
  }
}
