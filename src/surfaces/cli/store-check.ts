/** The store checks of `doctor`: full verification, recorded damage, and its acceptance by name. */
import { isReservedSession } from '../../journal/reserved-sessions.js';
import type { ComposedHost, Damage, Incident, Maintenance, MaintenanceLog, VerifyCursor } from '../compose.js';
import { UsageError } from '../settings.js';
import type { Terminal } from './terminal.js';
import { formatDuration, formatInteger, sanitizeText } from './terminal-text.js';

/** The result of a full verification. */
export interface StoreVerification {
  readonly sessions: number;
  readonly entries: number;
  readonly damage: readonly Damage[];
  /** True if SQLite's check of the file structure was skipped because it would block the owner. */
  readonly skippedStructure: boolean;
}

/** The interval of progress lines if stderr is not a terminal. */
const LOG_INTERVAL_MS = 10_000;
const FRAME_INTERVAL_MS = 100;

/** Verifies the whole store in steps, and shows the progress. */
export async function verifyStore(maintenance: Maintenance, terminal: Terminal): Promise<StoreVerification> {
  const startedAt = performance.now();
  const intervalMs = terminal.streams.stderr.isTTY === true ? FRAME_INTERVAL_MS : LOG_INTERVAL_MS;
  const damage: Damage[] = [];
  let [sessions, entries, skippedStructure, reportedAt] = [0, 0, false, startedAt];
  terminal.showProgress('Verifying the structure of the file …');
  for (let cursor: VerifyCursor | undefined, isFirst = true; cursor !== undefined || isFirst; isFirst = false) {
    const step = await maintenance.verify(cursor);
    cursor = step.cursor;
    sessions += step.sessions;
    entries += step.entries;
    skippedStructure ||= step.skippedStructure;
    damage.push(...step.damage);
    if (performance.now() - reportedAt < intervalMs) continue;
    reportedAt = performance.now();
    const damaged = damage.length === 0 ? '' : `, ${formatInteger(damage.length)} damaged`;
    const progress = `${formatInteger(sessions)} of ${formatInteger(step.total)} sessions, ${formatInteger(entries)} entries${damaged}`;
    terminal.showProgress(`Verifying: ${progress}, ${formatDuration(reportedAt - startedAt)}`);
  }
  terminal.showProgress(undefined);
  return { sessions, entries, damage, skippedStructure };
}

/** Returns the damage of an open store that has not been accepted. A file with a broken structure cannot record its own. */
export async function recordedDamage({
  maintenance,
  store,
}: Pick<ComposedHost, 'maintenance' | 'store'>): Promise<readonly Damage[]> {
  if (maintenance === undefined) return [];
  const { report } = store as { readonly report?: { readonly damage: readonly Damage[] } };
  const ofFile = (report?.damage ?? []).filter(({ kind }) => kind === 'file');
  return [...ofFile, ...(await maintenance.readLog()).damage];
}

/**
 * Returns the damage with this name: all damage of a session, or with `@KIND` the damage that belongs to no session.
 */
function damageNamed(name: string, damage: readonly Incident[]): readonly Incident[] {
  const ofSession = damage.filter(({ session }) => session === name);
  return ofSession.length > 0
    ? ofSession
    : damage.filter(({ session, kind }) => session === undefined && name === `@${kind}`);
}

/** Returns the name by which damage is accepted. */
export function damageNameOf({ session, kind }: Damage): string {
  return session ?? `@${kind}`;
}

/** The user and reason to record with an acceptance. */
export interface Attribution {
  readonly by: string;
  readonly reason?: string;
}

/** Accepts the damage with these names. If a name has no damage, throws a UsageError and accepts nothing. */
export async function acceptDamage(
  names: readonly string[],
  attribution: Attribution,
  maintenance: Maintenance,
  terminal: Terminal,
): Promise<readonly Incident[]> {
  const { damage } = await maintenance.readLog();
  const incidentsByName = names.map((name) => [name, damageNamed(name, damage)] as const);
  const unknown = incidentsByName.find(([, incidents]) => incidents.length === 0)?.[0];
  if (unknown !== undefined) {
    throw new UsageError(`There is no recorded damage named "${sanitizeText(unknown)}" to accept. See: rondo doctor`);
  }
  const ids = new Set(incidentsByName.flatMap(([, incidents]) => incidents.map(({ id }) => id)));
  const accepted = await maintenance.accept([...ids], attribution);
  for (const incident of accepted)
    terminal.printToStderr(`Accepted: ${describeDamage(incident)}${consequenceOf(incident)}`);
  return accepted;
}

function consequenceOf({ session, closed }: Incident): string {
  if (session === undefined) return '';
  if (closed?.as === 'continued') return ` The session can be used again.`;
  if (isReservedSession(session)) return ' It stays refused: its remaining data cannot be read. Restore a backup.';
  return ` The session stays refused: its remaining data cannot be read. Remove it with: rondo remove ${sanitizeText(session)}`;
}

/** Describes damage for the terminal. */
export function describeDamage(damage: Damage): string {
  const { session, kind, note } = damage;
  return sanitizeText(session === undefined ? `${note}.` : `session "${session}": ${kind}: ${note}.`);
}

/** Returns how to deal with damage. */
export function damageAdvice(damage: Damage): string {
  const name = sanitizeText(damageNameOf(damage));
  if (damage.kind === 'file') return 'Restore the file from a backup; until then it is read-only.';
  const acceptCommand = `rondo doctor --accept ${name}`;
  if (damage.session === undefined) return `Restore a backup, or accept it: ${acceptCommand}`;
  if (isReservedSession(damage.session)) return `Restore a backup, or accept the loss: ${acceptCommand}`;
  return `Restore a backup, accept the loss: ${acceptCommand}, or remove the session: rondo remove ${name}`;
}

/** Returns the distinct sessions of damage. */
export function affectedSessions(damage: readonly Damage[]): readonly string[] {
  return [...new Set(damage.flatMap(({ session }) => session ?? []))];
}

/** Describes each damage that was accepted or removed, with user, time and reason. */
export function acceptedDamageLines({ closed }: MaintenanceLog): readonly string[] {
  return closed.flatMap((incident) => {
    const closing = incident.closed;
    if (closing === undefined) return [];
    const reason = closing.reason === undefined ? '' : ` (${closing.reason})`;
    const action = closing.as === 'removed' ? 'removed with its session' : 'accepted';
    const user = closing.by === '' ? '' : ` by ${closing.by}`;
    const time = new Date(closing.at).toISOString();
    return [sanitizeText(`${action}${user} at ${time}${reason}: ${describeDamage(incident)}`)];
  });
}
